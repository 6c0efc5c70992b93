"""Every finding of the doctor, provoked with real sockets, and nothing found where all is well."""

from __future__ import annotations

import asyncio
import ssl
import subprocess
import time
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from msgspec import convert

import ordercast as oc
from certificates import authority, signed
from datagrams import free_group
from listeners import closed_port, entry, fake_node, firewall, free_port, speaker, translated
from ordercast.errors import ConfigError, UsageError
from ordercast.runtime.control import DialbackReply
from ordercast.runtime.diagnosis.catalogue import CATALOGUE
from ordercast.runtime.diagnosis.diagnose import diagnose
from ordercast.runtime.diagnosis.findings import Diagnosis
from ordercast.runtime.diagnosis.here import check_bind, check_files
from ordercast.runtime.diagnosis.majority import check_majority
from ordercast.runtime.diagnosis.report import Report
from ordercast.runtime.diagnosis.subject import Subject
from ordercast.runtime.diagnosis.unanswered import Attempt, why_unanswered
from ordercast.runtime.query_client import QueryClient
from ordercast.runtime.stalls import WINDOW_SECONDS, Stalls
from ordercast.transport.contract import Counters, Limits
from ordercast.transport.discovery import Discovery
from ordercast.transport.security import Security
from ordercast.transport.tls import Tls
from ordercast.wire.control import Refuse
from ordercast.wire.opening import pack_opening

PATIENCE = 20.0  # seconds; nothing here needs a hundredth of it ...
BRIEFLY = 0.5  # ... except silence
KEY, OTHER_KEY = "k" * 32, "o" * 32


async def examined(*addresses: str, discover: str | None = None, **subject: Any) -> Diagnosis:
    diagnosis = Diagnosis()
    where = None if discover is None else Discovery(discover)
    about = Subject(**{"patience": PATIENCE, **subject})
    await diagnose(addresses, about, diagnosis, discover=where)
    return diagnosis


def codes(diagnosis: Diagnosis) -> list[str]:
    return [finding.code for finding in diagnosis.worst_first()]


def the_one(diagnosis: Diagnosis, code: str) -> str:
    """What was seen, of the only finding."""
    assert codes(diagnosis) == [code], diagnosis.findings
    return diagnosis.findings[0].seen


# -- all is well ----------------------------------------------------------------------------------


async def test_two_nodes_and_a_third_that_may_come_are_healthy() -> None:
    async with oc.Node("alice", bootstrap=True) as alice:
        await alice.join("prices", order="total")
        async with oc.Node("bob", seeds=[alice.address]) as bob:
            diagnosis = await examined(
                alice.address, name="carol", bind="127.0.0.1:0", group="prices", order="total"
            )
            assert diagnosis.healthy and not diagnosis.findings and not diagnosis.skipped
            assert diagnosis.answered == 2
            assert {passed.check for passed in diagnosis.passed} == {
                "this node can listen", "a node answers", "round trip", "event loop",
                "the node can connect back", "every member can be reached", "it is one cluster",
                "a majority is there",
                "the name is free", "room for a node", "options that all share",
                "the group's order", "heartbeats fit", "programs read",
            }  # fmt: skip
            assert bob.address in {passed.where for passed in diagnosis.passed}


async def test_what_was_not_given_is_not_checked_and_that_is_said() -> None:
    async with fake_node() as alice:
        diagnosis = await examined(alice.address)
    assert diagnosis.healthy
    assert [one.why.partition(" to have")[0] for one in diagnosis.skipped] == [
        "give --bind",
        "give --bind, with a port that is free,",
        "give --name",
        "give --group and --order",
    ]


# -- the way there --------------------------------------------------------------------------------


@pytest.mark.parametrize("address", ["nonsense", "host:99999", ":7700", "127.0.0.1:0", "a\nb:1"])
async def test_an_address_that_is_none_is_named(address: str) -> None:
    assert "address=" in the_one(await examined(address), "address")


async def test_a_name_that_does_not_resolve_is_told() -> None:
    insecure = Security.given(None, None, True)
    diagnosis = await examined("nobody.invalid:7700", security=insecure)
    seen = the_one(diagnosis, "unresolved")
    assert "'nobody.invalid': the name does not resolve" in seen


async def test_a_port_where_nobody_listens_is_told() -> None:
    assert "nobody listens" in the_one(await examined(closed_port()), "refused")


async def test_packets_that_are_dropped_are_told_from_a_refusal() -> None:
    async with firewall() as address:
        seen = the_one(await examined(address, patience=BRIEFLY), "silence")
    assert f"{address} did not answer within 0.5 s: silence" in seen


async def test_an_address_without_a_route_is_told() -> None:
    diagnosis = await examined("224.0.0.1:9", security=Security.given(None, None, True))
    assert "no route there" in the_one(diagnosis, "no_route")


async def test_plain_text_is_not_said_on_the_network_unless_it_is_meant() -> None:
    diagnosis = await examined("192.0.2.1:9", bind="0.0.0.0:0")
    assert codes(diagnosis) == ["exposed", "exposed"]
    assert [finding.where for finding in diagnosis.findings] == ["here", "192.0.2.1:9"]


async def test_a_listener_that_says_nothing_is_mute() -> None:
    async with speaker() as address:
        diagnosis = await examined(address, patience=BRIEFLY)
    assert "sends nothing" in the_one(diagnosis, "mute")


async def test_a_listener_that_hangs_up_is_told() -> None:
    async with speaker(hangs_up=True) as address:
        assert "closes them without an answer" in the_one(await examined(address), "hung_up")


@pytest.mark.parametrize(
    ("words", "waits_for", "who"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", b"\r\n\r\n", "an HTTP server"),
        (b"SSH-2.0-OpenSSH_9.6\r\n", b"", "an SSH server"),
        (b"\xff\xfb\x01\xff\xfb\x03", b"", "something else"),
    ],
)
async def test_another_program_at_the_port_is_named(words, waits_for, who) -> None:
    async with speaker(words, waits_for=waits_for) as address:
        diagnosis = await examined(address, patience=2 * BRIEFLY)
    assert f"{who} answers there, not a node" in the_one(diagnosis, "stranger")


async def test_a_seed_that_fails_beside_one_that_works_is_a_warning_and_comes_last() -> None:
    async with fake_node() as alice:
        diagnosis = await examined(closed_port(), alice.address, name="alice")
    found = [(finding.level, finding.code) for finding in diagnosis.worst_first()]
    assert found == [("fault", "name_taken"), ("warning", "refused")]


async def test_nothing_to_examine_is_a_mistake_of_the_caller() -> None:
    with pytest.raises(UsageError, match="give the address of a node"):
        await examined()


async def test_a_multicast_group_where_no_node_answers_is_told() -> None:
    diagnosis = await examined(discover=free_group(), bind="127.0.0.1:0", patience=BRIEFLY)
    assert "no node of cluster 'ordercast' answered" in the_one(diagnosis, "not_discovered")


async def test_nodes_that_answer_in_a_multicast_group_are_examined() -> None:
    group = free_group()
    async with oc.Node("alice", bootstrap=True, discover=Discovery(group)) as alice:
        diagnosis = await examined(discover=group, bind="127.0.0.1:0")
    assert not diagnosis.findings and diagnosis.answered == 1
    assert f"alice at {alice.address}" in {passed.seen for passed in diagnosis.passed}


async def test_an_interface_that_is_not_of_this_machine_is_told() -> None:
    insecure = Security.given(None, None, True)
    diagnosis = await examined(discover=free_group(), bind="192.0.2.1:0", security=insecure)
    assert codes(diagnosis) == ["bind_elsewhere", "not_discovered"]


# -- TLS and the key ------------------------------------------------------------------------------


def with_tls(name: str) -> Security:
    return Security.given(None, signed(name))


def server_context(tls: Tls) -> ssl.SSLContext:
    """A server with a certificate that no node of ours would start with."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tls.certificate, tls.key)
    return context


@cache
def signed_for_later() -> Tls:
    """A certificate that is valid from the year 2090 on."""
    good = signed("later")
    folder = Path(authority("ours").folder)
    (folder / "index.txt").touch()
    (folder / "ca.cnf").write_text(
        "[ca]\ndefault_ca = ours\n[ours]\ndatabase = index.txt\nnew_certs_dir = .\n"
        "rand_serial = yes\ndefault_md = sha256\npolicy = names\n[names]\ncommonName = supplied\n"
    )
    command = (
        "openssl ca -batch -notext -config ca.cnf -cert ca.pem -keyfile ca.key "
        "-startdate 20900101000000Z -enddate 20910101000000Z -in later.csr -out not-yet.pem"
    )
    subprocess.run(command.split(), cwd=folder, check=True, capture_output=True)
    return Tls(folder / "not-yet.pem", good.key, good.authority)


async def test_nodes_with_the_same_authority_and_key_are_healthy() -> None:
    async with fake_node(security=Security.given(KEY, signed("alice"))) as alice:
        security = Security.given(KEY, signed("carol"))
        diagnosis = await examined(alice.address, security=security, bind="127.0.0.1:0")
    assert not diagnosis.findings and diagnosis.answered == 1


async def test_a_real_node_with_a_key_and_tls_is_examined_with_both_and_hidden_without() -> None:
    async with oc.Node("alice", bootstrap=True, key=KEY, tls=signed("alice")) as alice:
        security = Security.given(KEY, signed("carol"))
        assert not (await examined(alice.address, security=security)).findings
        assert codes(await examined(alice.address)) == ["tls_there"]
        only_tls = Security.given(None, signed("carol"))
        assert codes(await examined(alice.address, security=only_tls)) == ["key"]


async def test_plain_text_against_a_node_with_tls_is_told() -> None:
    async with fake_node(security=with_tls("alice")) as alice:
        assert "it speaks TLSv1.3" in the_one(await examined(alice.address), "tls_there")


async def test_tls_against_a_node_with_plain_text_is_told() -> None:
    async with fake_node() as alice:
        diagnosis = await examined(alice.address, security=with_tls("carol"))
    assert "answers in plain text; you use TLS" in the_one(diagnosis, "plain_there")


@pytest.mark.parametrize(
    ("shown", "fault"),
    [
        (lambda: signed("old", days=-1), "the certificate has expired"),
        (signed_for_later, "the certificate is not valid yet"),
        (lambda: signed("eve", "theirs"), "the certificate is signed by another authority"),
    ],
    ids=["expired", "not yet", "another authority"],
)
async def test_the_fault_of_the_other_sides_certificate_is_named(shown, fault: str) -> None:
    async with speaker(tls=server_context(shown())) as address:
        diagnosis = await examined(address, security=with_tls("carol"))
    assert fault in the_one(diagnosis, "certificate")


async def test_a_certificate_that_the_other_side_does_not_accept_is_told() -> None:
    context = server_context(signed("alice"))
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(authority("theirs").pem)
    async with speaker(tls=context) as address:
        diagnosis = await examined(address, security=with_tls("carol"))
    assert "closes the connection after it got this side's" in the_one(
        diagnosis, "certificate_refused"
    )


async def test_an_older_tls_than_ours_is_told() -> None:
    context = server_context(signed("alice"))
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    async with speaker(tls=context) as address:
        diagnosis = await examined(address, security=with_tls("carol"))
    assert "it speaks TLSv1.2, and this side speaks TLSv1.3 only" in the_one(diagnosis, "tls")


async def test_a_server_with_a_good_certificate_that_says_nothing_is_mute() -> None:
    async with speaker(tls=server_context(signed("alice"))) as address:
        diagnosis = await examined(address, security=with_tls("carol"), patience=2 * BRIEFLY)
    assert "sends nothing" in the_one(diagnosis, "mute")


async def test_an_alert_about_the_certificate_is_told_in_words() -> None:
    subject = Subject(security=with_tls("carol"))
    attempt = Attempt(subject.hello(), QueryClient(), Limits(), Counters())
    alert = ssl.SSLError(1, "tlsv1 alert unknown ca")
    alert.reason = "TLSV1_ALERT_UNKNOWN_CA"
    failure = await why_unanswered(attempt, alert, ("127.0.0.1", 1), subject)
    assert failure.code == "certificate_refused"
    assert failure.seen == "it does not accept our certificate: another authority"


@pytest.mark.parametrize(
    ("tls", "fault"),
    [
        (lambda: signed("old", days=-1), "has expired"),
        (signed_for_later, "not valid yet"),
        (
            lambda: Tls(signed("one").certificate, signed("two").key, authority("ours").pem),
            "does not fit the certificate",
        ),
        (
            lambda: Tls(signed("eve", "theirs").certificate, signed("eve", "theirs").key,
                        authority("ours").pem),
            "signed by another authority",
        ),
        (lambda: Tls("/nowhere.pem", "/nowhere.key", authority("ours").pem), "No such file"),
    ],
    ids=["expired", "not yet", "another key", "another authority", "no file"],
)  # fmt: skip
def test_the_fault_of_ones_own_certificate_is_named(tls, fault: str) -> None:
    diagnosis = Diagnosis()
    assert check_files(None, tls(), False, diagnosis) is None
    assert fault in the_one(diagnosis, "own_certificate")


@pytest.mark.parametrize(
    ("theirs", "ours", "said"),
    [
        (KEY, None, "it asks for a proof of the key, and no key was given"),
        (KEY, OTHER_KEY, "it has another key than this side"),
        (None, KEY, "it has no key, and this side has one"),
    ],
    ids=["missing", "wrong", "superfluous"],
)
@pytest.mark.parametrize("encrypted", [False, True], ids=["plain", "tls"])
async def test_a_key_that_does_not_fit_is_told(theirs, ours, said: str, encrypted: bool) -> None:
    certificate = signed("alice") if encrypted else None
    async with fake_node(security=Security.given(theirs, certificate)) as alice:
        diagnosis = await examined(alice.address, security=Security.given(ours, certificate))
    assert the_one(diagnosis, "key") == said


# -- not one of them ------------------------------------------------------------------------------


async def test_another_clusters_name_is_told_with_both_names() -> None:
    async with oc.Node("alice", bootstrap=True, cluster="prod") as alice:
        seen = the_one(await examined(alice.address, cluster="test"), "cluster")
    assert "this is cluster 'prod', not 'test'" in seen


async def test_another_wire_version_is_told_with_both_numbers() -> None:
    async with fake_node(version=9) as alice:
        seen = the_one(await examined(alice.address), "version")
    assert "wire versions 9 to 9, not 1 to 1" in seen


async def test_a_node_that_has_too_many_strangers_says_so_itself() -> None:
    refusal = pack_opening(Refuse("full", "more than 1 connections wait to be let in"))
    async with speaker(refusal, waits_for=b"OCST") as address:
        seen = the_one(await examined(address), "full")
    assert "more than 1 connections wait to be let in" in seen


async def test_a_status_that_is_none_is_told() -> None:
    async with fake_node() as alice:
        alice.raw_status = b'{"state": 7}'
        assert "not readable" in the_one(await examined(alice.address), "status")


async def test_a_refusal_of_another_kind_is_told_in_the_nodes_words() -> None:
    async with speaker(b"OCST\x01\x00\x0b\x92\xa4mood\xa4not!", waits_for=b"OCST") as address:
        assert "it refuses: not!" in the_one(await examined(address), "refusal")


async def test_the_namesake_is_named_with_its_address_and_whether_it_answers() -> None:
    async with (
        oc.Node("alice", bootstrap=True) as alice,
        oc.Node("bob", seeds=[alice.address]) as bob,
    ):
        seen = the_one(await examined(alice.address, name="bob"), "name_taken")
        assert seen == f"bob#1 is in the cluster, at {bob.address}; it answers"


async def test_a_cluster_that_is_full_is_told_with_its_limit() -> None:
    async with oc.Node("alice", bootstrap=True, max_nodes=1) as alice:
        seen = the_one(await examined(alice.address), "full")
    assert seen == "1 nodes are in, and max_nodes=1"


async def test_the_limits_of_the_coordinator_count_though_another_node_was_asked() -> None:
    async with (
        oc.Node("alice", bootstrap=True, max_nodes=2) as alice,
        oc.Node("bob", seeds=[alice.address]) as bob,
    ):
        diagnosis = await examined(bob.address)
        assert the_one(diagnosis, "full") == "2 nodes are in, and max_nodes=2"
        assert diagnosis.findings[0].where == alice.address


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ({"max_message": 1000}, {"max_message": 2000}),
        ({"frame_bytes": 1000}, {"frame_bytes": 2000}),
        ({"codec": "json"}, {"codec": "msgpack"}),
        ({"partition": "merge"}, {"partition": "primary"}),
        ({"transport": "udp"}, {"transport": "tcp"}),
    ],
    ids=lambda options: next(iter(options)),
)
async def test_an_option_that_all_share_is_told_with_both_values(theirs, ours) -> None:
    [(option, value)] = ours.items()
    async with oc.Node("alice", bootstrap=True, **theirs) as alice:
        seen = the_one(await examined(alice.address, options=ours), "options_differ")
        assert seen == f"{option}={theirs[option]!r} at alice#1, {value!r} at your node"
        noted = await examined(alice.address)
    assert codes(noted) == ["options_not_default"] and noted.healthy


async def test_that_datagrams_are_not_tried_is_said() -> None:
    async with oc.Node("alice", bootstrap=True, transport="udp") as alice:
        diagnosis = await examined(alice.address, options={"transport": "udp"})
    assert not diagnosis.findings
    assert "datagrams pass" in {skipped.check for skipped in diagnosis.skipped}


@pytest.mark.parametrize("want", [{"order": "fifo"}, {"order": "total", "protocol": "agreed"}])
async def test_a_group_with_another_order_or_protocol_is_told_with_both(want) -> None:
    async with oc.Node("alice", bootstrap=True) as alice:
        await alice.join("prices", order="total", protocol="sequencer_pb")
        diagnosis = await examined(alice.address, group="prices", **want)
    seen = the_one(diagnosis, "order_mismatch")
    assert "has order 'total' (protocol 'sequencer_pb'); your node asks for order" in seen


async def test_a_group_that_does_not_exist_yet_is_only_a_note_unless_there_is_no_room() -> None:
    async with oc.Node("alice", bootstrap=True, max_groups=1) as alice:
        new = await examined(alice.address, group="prices", order="total")
        assert codes(new) == ["group_is_new"] and new.healthy
        await alice.join("news", order="fifo")
        full = await examined(alice.address, group="prices", order="total")
        assert codes(full) == ["groups_full", "group_is_new"]


# -- is it one cluster? ---------------------------------------------------------------------------


async def test_nodes_that_each_formed_their_own_cluster_are_told_so() -> None:
    async with oc.Node("alice", bootstrap=True) as alice, oc.Node("bob", bootstrap=True) as bob:
        seen = the_one(await examined(alice.address, bob.address), "each_alone")
    assert seen == "each node formed its own cluster: alice#1 is alone; bob#1 is alone"


async def test_seeds_of_several_clusters_of_one_name_are_told() -> None:
    async with (
        oc.Node("alice", bootstrap=True) as alice,
        oc.Node("bob", bootstrap=True) as bob,
        oc.Node("carol", seeds=[bob.address]),
    ):
        seen = the_one(await examined(alice.address, bob.address), "several_clusters")
    assert seen.endswith("alice#1 is alone; bob#1 is followed by 1 (bob, carol)")


async def test_sides_of_a_partition_are_told_by_their_coordinators() -> None:
    async with fake_node("alice", run="r") as alice, fake_node("bob", run="r") as bob:
        bob.status["nodes"].append(entry("carol", bob.address))
        diagnosis = await examined(alice.address, bob.address)
    seen = next(f.seen for f in diagnosis.findings if f.code == "partition")
    assert seen.startswith("one cluster, but 2 sides: alice#1 is alone; bob#1 is followed by 1")


def cut_off(*missing: str, **about: Any) -> dict[str, Any]:
    """The figures of a node whose view had alice, bob and carol."""
    voters = ["alice#1", "bob#1", "carol#1"]
    view = {"number": 7, "voters": voters, **about}
    silent = [f"{name}#1" for name in missing]
    return {"nodes": 3, "blocked": missing, "node_view": view, "suspicions": silent}


async def test_where_nobody_goes_on_the_command_that_recovers_is_named() -> None:
    async with (
        fake_node("alice", stats=cut_off("bob", "carol")) as alice,
        fake_node("bob", state="joining", nodes=[], incarnation=0) as bob,
    ):
        alice.status["nodes"].append(entry("bob", bob.address))
        diagnosis = await examined(alice.address, cluster="ordercast")
    assert codes(diagnosis) == ["no_majority", "joining"]
    told = diagnosis.worst_first()[0]
    assert told.where == alice.address
    assert told.seen == (
        "alice#1 is cut off: of node view 7 it cannot reach bob, carol; started again, and not "
        "let in: bob"
    )
    assert f"run `ordercast recover --node {alice.address}`" in told.cure
    assert "what only the missing nodes had is lost" in told.cure


async def test_the_command_that_recovers_is_asked_where_fewest_are_missing() -> None:
    listed = cut_off("carol", "dave", electorate=["alice", "bob", "carol"])
    async with (
        fake_node("alice", stats=cut_off("bob", "carol", "dave"), run="r") as alice,
        fake_node("bob", stats=listed, run="r", coordinator="alice#1") as bob,
    ):
        security = Security.given(key=KEY, tls=None)
        diagnosis = Diagnosis()
        reports = {one.address: convert(one.status, Report) for one in (alice, bob)}
        check_majority(reports, Subject(cluster="prod", security=security), diagnosis)
        place = bob.address
    seen = the_one(diagnosis, "no_majority")
    assert seen.endswith("it goes on by itself when alice, bob, carol are all here, started again "
                         "or not")  # fmt: skip
    command = f"ordercast recover --node {place} --cluster prod --key-file KEYFILE"
    assert f"`{command}`" in diagnosis.findings[0].cure and KEY not in diagnosis.findings[0].cure


async def test_without_any_voter_nothing_can_be_recovered_and_that_is_said() -> None:
    async with fake_node("worker", stats=cut_off("alice", "bob", "carol")) as worker:
        diagnosis = await examined(worker.address)
    assert the_one(diagnosis, "no_voter").endswith("no node that votes is here")
    assert "recover" not in diagnosis.findings[0].cure


async def test_nobody_is_told_to_recover_while_others_go_on() -> None:
    stats = cut_off("bob", "carol")
    async with fake_node("alice", stats=stats, run="r") as alice, fake_node("bob", run="r") as bob:
        alice.status["nodes"].append(entry("bob", bob.address))
        diagnosis = await examined(alice.address, bob.address)
    assert set(codes(diagnosis)) == {"partition"}
    assert any(
        "others that answer are not cut off" in finding.seen for finding in diagnosis.findings
    )
    assert "recover" not in "".join(finding.cure for finding in diagnosis.findings)
    async with (
        fake_node("alice", stats=stats) as alice,
        fake_node("bob") as bob,
    ):  # with a run= each
        alice.status["nodes"].append(entry("bob", bob.address))
        assert set(codes(await examined(alice.address, bob.address))) == {"partition"}


async def test_a_cluster_that_was_begun_beside_one_without_a_majority_does_not_hide_it() -> None:
    async with fake_node("alice", stats=cut_off("bob", "carol")) as alice, fake_node("bob") as bob:
        diagnosis = await examined(alice.address, bob.address)
    assert codes(diagnosis) == ["no_majority", "each_alone"]


async def test_sides_that_count_the_same_node_as_theirs_were_one_cluster() -> None:
    async with fake_node("alice") as alice, fake_node("bob") as bob:
        bob.status["nodes"].append(entry("alice", alice.address))
        diagnosis = await examined(alice.address, bob.address)
    assert codes(diagnosis) == ["partition"]


async def test_nodes_that_know_different_nodes_are_told() -> None:
    about = {"run": "r", "coordinator": "alice#1"}
    async with fake_node("alice", **about) as alice, fake_node("bob", **about) as bob:
        bob.status["nodes"].append(entry("alice", alice.address))
        seen = the_one(await examined(alice.address, bob.address), "lists_differ")
    assert seen == "alice#1 does not know bob#1, which others know"


async def test_nodes_that_all_wait_for_each_other_are_told_that_nobody_leads() -> None:
    looking = {"state": "joining", "nodes": []}
    async with fake_node("alice", **looking) as alice, fake_node("bob", **looking) as bob:
        alice.thinks = 0.1  # who answers first is not named first
        seen = the_one(await examined(alice.address, bob.address), "nobody_leads")
    assert seen == "alice, bob look for a cluster themselves, and none is in one"


async def test_a_node_that_looks_for_its_cluster_beside_one_that_has_one_is_told() -> None:
    async with oc.Node("alice", bootstrap=True) as alice:
        bob = oc.Node("bob", seeds=[closed_port()], bind="127.0.0.1:0", join_timeout=20.0)
        starting = asyncio.ensure_future(bob.start())
        while not hasattr(bob, "_presence") or not bob._presence.peers.hello.advertise:
            await asyncio.sleep(0)
        diagnosis = await examined(alice.address, bob._presence.peers.hello.advertise)
        starting.cancel()
        await asyncio.wait((starting,))
    assert the_one(diagnosis, "joining") == "'bob' looks for its cluster itself"


async def test_a_node_that_is_out_of_its_cluster_says_why() -> None:
    out = {"state": "out", "nodes": [], "out_reason": "it cannot come back yet: refused"}
    async with fake_node(**out) as alice:
        seen = the_one(await examined(alice.address), "out")
    assert seen == "'alice' is out: it cannot come back yet: refused"


async def test_a_node_in_another_state_says_which() -> None:
    async with fake_node(state="ended") as alice:
        assert "says that it is 'ended'" in the_one(await examined(alice.address), "not_running")


async def test_nodes_of_one_cluster_that_record_under_different_names_are_one() -> None:
    async with (
        oc.Node("alice", bootstrap=True, run="one") as alice,
        oc.Node("bob", seeds=[alice.address], run="two"),
    ):
        assert not (await examined(alice.address)).findings


async def test_a_member_that_cannot_be_reached_from_here_is_told() -> None:
    gone = closed_port()
    async with fake_node() as alice:
        alice.status["nodes"].append(entry("bob", gone))
        seen = the_one(await examined(alice.address), "member_unreachable")
    assert seen.startswith("bob#1 is in the cluster, but from here: connection refused")


async def test_another_node_at_a_members_address_is_told() -> None:
    async with fake_node() as alice, fake_node("mallory", run="run of alice") as mallory:
        mallory.status |= {"coordinator": "alice#1", "leads": False}
        alice.status["nodes"].append(entry("bob", mallory.address))
        diagnosis = await examined(alice.address)
    assert "member_elsewhere" in codes(diagnosis)
    assert any(f.seen == "mallory#1 answers at the address of bob#1" for f in diagnosis.findings)


async def test_nodes_of_different_releases_are_only_noted() -> None:
    about = {"run": "r", "coordinator": "alice#1"}
    async with fake_node("alice", **about) as alice, fake_node("bob", version=1, **about) as bob:
        bob.status["version"] = "0.0.9"
        bob.status["nodes"] = alice.status["nodes"] = [
            entry("alice", alice.address), entry("bob", bob.address),
        ]  # fmt: skip
        diagnosis = await examined(alice.address)
    assert codes(diagnosis) == ["releases_differ"] and diagnosis.healthy


# -- the way back ---------------------------------------------------------------------------------


async def test_a_node_that_cannot_reach_back_is_told() -> None:
    async with fake_node() as alice, translated(alice.address, "127.0.0.3") as address:
        diagnosis = await examined(address, bind="127.0.0.1:0")
    seen = the_one(diagnosis, "way_back")
    assert seen.startswith("this machine reaches alice#1, but alice#1 cannot reach it back")


async def test_a_node_that_reaches_somebody_else_is_told() -> None:
    port = free_port()
    somebody = await asyncio.start_server(lambda _, w: w.close(), "127.0.0.3", port)
    async with somebody, fake_node() as alice, translated(alice.address, "127.0.0.3") as address:
        diagnosis = await examined(address, bind=f"127.0.0.1:{port}")
    assert "that is not this node" in the_one(diagnosis, "way_back_elsewhere")


async def test_a_node_that_is_busy_leaves_the_check_undone(monkeypatch) -> None:
    monkeypatch.setattr("ordercast.runtime.diagnosis.way_back.PAUSE_SECONDS", 0.0)
    async with fake_node(reply=DialbackReply("busy", "one at a time")) as alice:
        diagnosis = await examined(alice.address, bind="127.0.0.1:0")
    assert diagnosis.healthy
    assert any("is connecting back to others" in one.why for one in diagnosis.skipped)


async def test_that_not_all_of_many_nodes_were_asked_to_call_back_is_said(monkeypatch) -> None:
    monkeypatch.setattr("ordercast.runtime.diagnosis.diagnose.MAX_CALLS", 1)
    async with fake_node("alice") as alice, fake_node("bob") as bob:
        diagnosis = await examined(alice.address, bob.address, bind="127.0.0.1:0")
    assert "1 nodes were asked; the others were not" in {one.why for one in diagnosis.skipped}


async def test_that_not_all_members_were_tried_is_said(monkeypatch) -> None:
    monkeypatch.setattr("ordercast.runtime.diagnosis.diagnose.MAX_MEMBERS", 1)
    async with fake_node("alice") as alice:
        alice.status["nodes"] += [entry("bob", closed_port()), entry("carol", closed_port())]
        diagnosis = await examined(alice.address)
    assert codes(diagnosis) == ["member_unreachable"]
    assert "2 nodes; 1 of them were tried" in {one.why for one in diagnosis.skipped}


async def test_a_port_that_is_taken_is_told() -> None:
    async with fake_node() as alice, speaker() as taken:
        assert "listens there already" in the_one(
            await examined(alice.address, bind=taken), "bind_taken"
        )


async def test_an_address_of_another_machine_is_no_place_to_listen() -> None:
    async with fake_node() as alice:
        insecure = Security.given(None, None, True)
        diagnosis = await examined(alice.address, bind="192.0.2.1:7700", security=insecure)
    assert the_one(diagnosis, "bind_elsewhere").startswith("bind=192.0.2.1:7700: ")


@pytest.mark.parametrize(
    ("bind", "there", "found"),
    [
        ("127.0.0.1:7700", "192.0.2.1", ["bind_loopback"]),
        ("[::1]:7700", "2001:db8::1", ["bind_loopback"]),
        ("127.0.0.1:7700", "127.0.0.1", []),
        ("192.0.2.2:7700", "192.0.2.1", []),
        ("localhost:7700", "192.0.2.1", ["bind_loopback"]),
    ],
)
def test_a_node_bound_to_the_loopback_is_deaf_to_other_machines(bind, there, found) -> None:
    diagnosis = Diagnosis()
    check_bind(Subject(bind=bind), there, diagnosis)
    assert codes(diagnosis) == found


# -- clocks ---------------------------------------------------------------------------------------


async def test_heartbeats_that_another_node_would_not_wait_for_are_told() -> None:
    async with oc.Node("alice", bootstrap=True) as alice:
        options = {"heartbeat_ms": 3000, "suspect_ms": 9000}
        diagnosis = await examined(alice.address, name="carol", options=options)
    seen = the_one(diagnosis, "heartbeats_clash")
    assert seen == (
        "carol has heartbeat_ms=3000, suspect_ms=9000; alice#1 has heartbeat_ms=250, "
        "suspect_ms=2000: alice#1 will suspect carol although it is alive"
    )


async def test_heartbeats_that_differ_are_a_warning() -> None:
    async with fake_node(heartbeat_ms=300) as alice:
        diagnosis = await examined(alice.address, options={"heartbeat_ms": 200})
    the_one(diagnosis, "heartbeats_differ")
    assert not diagnosis.healthy


async def test_round_trips_that_are_too_slow_for_the_heartbeats_are_told() -> None:
    async with fake_node(heartbeat_ms=1, suspect_ms=2) as alice:
        serve = alice.on_frames

        def slowly(conn, frames) -> None:
            asyncio.get_running_loop().call_later(0.02, serve, conn, frames)

        alice.on_frames = slowly
        seen = the_one(await examined(alice.address), "round_trip")
    assert "5 round trips, " in seen and "jitter" in seen and "may be late by 1 ms at most" in seen


async def test_a_second_cluster_that_a_node_knows_of_is_told() -> None:
    other = {"coordinator": "carol#1", "address": "127.0.0.1:7799", "nodes": 2}
    stats = {"nodes": 1, "max_nodes": 9, "other_clusters": [other]}
    async with fake_node("alice", stats=stats) as alice:
        seen = the_one(await examined(alice.address), "second_cluster")
    assert "127.0.0.1:7799 answers as another one of that name, coordinated by carol#1" in seen


async def test_a_trace_that_cannot_be_written_is_told() -> None:
    recorder = {"failing": "No space left on device", "lost": 7}
    stats = {"nodes": 1, "max_nodes": 9, "recorder": recorder}
    async with fake_node("alice", stats=stats) as alice:
        seen = the_one(await examined(alice.address), "trace_fails")
    assert seen == (
        "alice#1 cannot write its trace (No space left on device); 7 records are missing so far"
    )


async def test_an_event_loop_that_stands_still_is_told() -> None:
    stalls = {"longest_ms": 1500.0, "seconds_ago": 60.0, "notable": 3}
    stats = {"nodes": 1, "max_nodes": 9, "loop_stalls": stalls}
    async with fake_node(stats=stats) as alice:
        seen = the_one(await examined(alice.address), "stalls")
    assert seen.startswith("the event loop of alice#1 stood still for 1500 ms, 60 s ago")


async def test_a_node_notes_that_its_event_loop_stood_still() -> None:
    async with oc.Node("alice", bootstrap=True) as alice:
        before = alice.stats()["loop_stalls"]["notable"]
        time.sleep(0.5)  # what an application must not do
        while alice.stats()["loop_stalls"]["notable"] == before:
            await asyncio.sleep(0.01)
        assert alice.stats()["loop_stalls"]["longest_ms"] > 50


async def test_a_stall_is_forgotten_after_a_while_and_a_longer_one_takes_its_place() -> None:
    stalls = Stalls()
    stalls.stop()
    now = asyncio.get_running_loop().time()

    def longest_ms(late: float, after: float) -> float:
        stalls.note(late, now + after)
        return stalls.stats()["longest_ms"]

    assert longest_ms(1.0, 1.0) == 1000
    assert longest_ms(0.5, 2.0) == 1000
    assert longest_ms(1.5, 3.0) == 1500
    assert longest_ms(0.1, WINDOW_SECONDS) == 1500
    assert longest_ms(0.0, 2 * WINDOW_SECONDS) == 100
    assert longest_ms(0.0, 3 * WINDOW_SECONDS) == 0
    assert stalls.stats()["notable"] == 4


# -- programs that hold others up -----------------------------------------------------------------


async def test_a_member_whose_program_does_not_read_is_told_once_whoever_says_it() -> None:
    stats = {"groups": {"g": {"slow_members": {"bob": 12.5}}}}
    guest = {"guest_of": {"g": {"slow_members": {"bob": 12.0}}}}
    async with fake_node("alice", stats=stats) as alice, fake_node("carol", stats=guest) as carol:
        diagnosis = await examined(alice.address, carol.address)
    (finding,) = [one for one in diagnosis.findings if one.code == "slow_member"]
    assert finding.where == "bob"
    assert finding.seen.startswith("the program of bob has taken nothing of group 'g' for 12.5 s")


async def test_a_loop_that_stands_now_is_told_by_those_who_hear_its_pulses() -> None:
    stats = {"pulses": {"port": 7700, "standing_still": {"bob": 3.5}}}
    async with fake_node("alice", stats=stats) as alice:
        seen = the_one(await examined(alice.address), "standing")
    assert seen == "the event loop of bob has stood still for 3.5 s"


async def test_pulses_that_do_not_arrive_are_noted() -> None:
    stats = {"pulses": {"port": 7700, "never_heard_from": ["bob", "carol"]}}
    async with fake_node("alice", stats=stats) as alice:
        diagnosis = await examined(alice.address)
    assert the_one(diagnosis, "no_pulses") == "no pulse has come at UDP port 7700 from bob, carol"
    assert {one.level for one in diagnosis.findings} == {"note"}


# -- wrong input, and the catalogue ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "error", "said"),
    [
        ({"name": ""}, ValueError, "node"),
        ({"cluster": "a\nb"}, ValueError, "cluster"),
        ({"bind": "nowhere"}, ValueError, "bind='nowhere' is not an address"),
        ({"order": "total"}, ValueError, "name the group"),
        ({"group": "g", "order": "alphabetical"}, ValueError, "alphabetical"),
        ({"group": "g", "order": "total", "protocol": "telepathy"}, ValueError, "telepathy"),
        ({"options": {"max_massage": 1}}, ValueError, "no option 'max_massage'"),
        ({"options": {"heartbeat_ms": 2000}}, ConfigError, "suspect_ms must be at least 4000"),
        ({"patience": 0}, ValueError, "timeout=0 must be positive"),
    ],
)
def test_what_cannot_be_a_node_is_refused_before_anything_is_probed(wrong, error, said) -> None:
    with pytest.raises(error, match=said):
        Subject(**wrong)


def test_every_finding_of_the_catalogue_is_provoked_here() -> None:
    text = Path(__file__).read_text()
    assert [code for code in CATALOGUE if f'"{code}"' not in text] == []


def test_the_worst_finding_comes_first_and_nothing_is_said_twice() -> None:
    diagnosis = Diagnosis()
    for code in ("group_is_new", "stalls", "name_taken", "refused", "refused"):
        diagnosis.find(code, "somewhere", "something")
    assert codes(diagnosis) == ["refused", "name_taken", "stalls", "group_is_new"]
