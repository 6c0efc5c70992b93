"""Settings of a sequencer and of a node: which layer counts, and what is said of a wrong one."""

from __future__ import annotations

from pathlib import Path

import pytest

import ordercast as oc
from ordercast.errors import ConfigError
from ordercast.service.layers import KUBERNETES, keys_of, load, variable_of
from ordercast.service.settings import KINDS, NodeSettings, SequencerSettings

RUNNING = {"bootstrap": True}


def written(folder: Path, text: str) -> Path:
    file = folder / "sequencer.toml"
    file.write_text(text)
    return file


def test_defaults_are_weaker_than_the_file_the_environment_and_flags(tmp_path: Path) -> None:
    file = written(tmp_path, 'name = "file"\ncluster = "file"\nlisten = "127.0.0.1:1"\n')
    environment = {"ORDERCAST_NAME": "environment", "ORDERCAST_CLUSTER": "environment"}
    loaded = load(SequencerSettings, file, environment, {"name": "flag", **RUNNING})
    assert loaded.settings == SequencerSettings(
        name="flag", cluster="environment", listen="127.0.0.1:1", bootstrap=True
    )
    assert loaded.places == {
        "listen": f"{file}:3",
        "cluster": "$ORDERCAST_CLUSTER",
        "name": "--name",
        "bootstrap": "--bootstrap",
    }


def test_text_of_the_environment_becomes_what_the_key_wants() -> None:
    environment = {
        "ORDERCAST_PEERS": "127.0.0.1:1, 127.0.0.1:2,",
        "ORDERCAST_INSECURE": "Yes",
        "ORDERCAST_DRAIN_TIMEOUT": "2.5",
        "ORDERCAST_NODE_HEARTBEAT_MS": "100",
        "ORDERCAST_NODE_REJOIN": "false",
    }
    settings = load(SequencerSettings, environment=environment).settings
    assert settings.peers == ("127.0.0.1:1", "127.0.0.1:2")
    assert (settings.insecure, settings.drain_timeout) == (True, 2.5)
    assert settings.node == {"heartbeat_ms": 100, "rejoin": False}


def test_a_member_can_be_told_its_resilience_in_text_and_as_a_number(tmp_path: Path) -> None:
    file = written(tmp_path, 'order = "total"\ngroup = ["g"]\n[node]\nresilience = 1\n')
    assert load(NodeSettings, file, flags=RUNNING).settings.node == {"resilience": 1}
    flags = {"node.resilience": "2", **RUNNING}
    assert load(NodeSettings, file, flags=flags).settings.node == {"resilience": 2}


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("lissten = '127.0.0.1:1'", ":2: there is no 'lissten'; did you mean 'listen'?"),
        ("key = 'secret'", ":2: there is no 'key'; did you mean 'key_file'?"),
        ("[node]\nhartbeat_ms = 3", ":3: there is no 'node.hartbeat_ms'; did you mean 'node.heart"),
        ("[noode]\nheartbeat_ms = 3", "did you mean 'node.heartbeat_ms'?"),
        ("zzz = 3", "there is no 'zzz'; there are name, listen, advertise"),
        ("[node]\nzzz = 3", "there are node.window_bytes, "),
        ("listen = 7700", ":2: listen = 7700 is wrong; write an address like '127.0.0.1:7700'"),
        ("listen = '7700'", "listen='7700' is not an address; write host:port"),
        ("peers = '127.0.0.1:1'", "peers = '127.0.0.1:1' is wrong; write a list like ["),
        ("insecure = 'yes'", "insecure = 'yes' is wrong; write true or false"),
        ("drain_timeout = 0", "drain_timeout = 0 is wrong; write a positive number"),
        ("drain_timeout = true", "write a positive number"),
        ("log_format = 'xml'", "log_format = 'xml' is wrong; write 'logfmt' or 'json'"),
        ("log_level = 3", "write 'debug' or 'info' or 'warning' or 'error'"),
        ('name = "a\\u0007"', "the node name 'a\\x07' contains a control character"),
        ("[node]\nheartbeat_ms = 2.5", "node.heartbeat_ms = 2.5 is wrong; write a whole number"),
        ("[node]\nheartbeat_ms = 5000", "suspect_ms=2000 with heartbeat_ms=5000"),
        ("[node]\nsequencer = false", "there is no 'node.sequencer'"),
        (
            "tls_cert = 'a.pem'",
            "TLS needs all three of tls_cert, tls_key, tls_ca; tls_key, tls_ca is missing",
        ),
        ("listen = ", ": this is not TOML: Invalid value (at line 2"),
    ],
)
def test_a_wrong_file_is_refused_with_the_place_and_what_would_be_right(
    tmp_path: Path, line: str, said: str
) -> None:
    file = written(tmp_path, f"bootstrap = true\n{line}\n")
    with pytest.raises(ConfigError) as refused:
        load(SequencerSettings, file)
    assert said in str(refused.value)
    assert str(refused.value).startswith((str(file), "[node]", "TLS"))


def test_a_variable_that_is_none_is_told_as_it_is_written() -> None:
    pairs = (("LISTN", "LISTEN"), ("SEEDS", "PEERS"), ("NODE_HARTBEAT_MS", "NODE_HEARTBEAT_MS"))
    for wrong, right in pairs:
        with pytest.raises(ConfigError) as refused:
            load(SequencerSettings, environment={f"ORDERCAST_{wrong}": "x"}, flags=RUNNING)
        assert str(refused.value) == (
            f"$ORDERCAST_{wrong}: there is no 'ORDERCAST_{wrong}'; "
            f"did you mean 'ORDERCAST_{right}'?"
        )


def test_all_that_is_wrong_is_told_at_once(tmp_path: Path) -> None:
    file = written(tmp_path, "listen = 1\nlissten = 2\n")
    with pytest.raises(ConfigError) as refused:
        load(
            SequencerSettings,
            file,
            {"ORDERCAST_INSECURE": "perhaps"},
            {"node.heartbeat_ms": "often"},
        )
    assert str(refused.value).splitlines() == [
        f"{file}:1: listen = 1 is wrong; write an address like '127.0.0.1:7700'",
        f"{file}:2: there is no 'lissten'; did you mean 'listen'?",
        "$ORDERCAST_INSECURE: insecure = 'perhaps' is wrong; write true or false",
        "--option heartbeat_ms: node.heartbeat_ms = 'often' is wrong; write a whole number",
    ]


def test_variables_of_a_kubernetes_service_and_of_other_commands_are_not_ours() -> None:
    variables = (
        "ORDERCAST_SERVICE_HOST", "ORDERCAST_SERVICE_PORT", "ORDERCAST_SERVICE_PORT_HTTP",
        "ORDERCAST_PORT", "ORDERCAST_PORT_7700_TCP", "ORDERCAST_PORT_7700_TCP_ADDR",
        "ORDERCAST_SEQ_PORT_7700_TCP_PROTO", "ORDERCAST_KEY", "ORDERCAST_CONFIG", "PATH",
    )  # fmt: skip
    assert load(
        SequencerSettings, environment=dict.fromkeys(variables, "x"), flags=RUNNING
    ).places == {"bootstrap": "--bootstrap"}


def test_no_key_is_taken_for_a_variable_of_kubernetes_and_no_two_share_one() -> None:
    for kind in KINDS:
        keys = keys_of(kind)
        assert [key for key in keys if KUBERNETES.fullmatch(variable_of(key))] == []
        assert len({variable_of(key) for key in keys}) == len(keys)


def test_a_sequencer_without_a_cluster_is_refused_and_its_own_address_is_none() -> None:
    for flags in ({}, {"peers": "127.0.0.1:7700"}):
        with pytest.raises(ConfigError, match="neither bootstrap nor peers"):
            load(SequencerSettings, flags=flags)
    settings = load(SequencerSettings, flags={"peers": "127.0.0.1:7700,127.0.0.1:7701"}).settings
    assert settings.other_peers == ("127.0.0.1:7701",)


def test_a_node_takes_the_arguments() -> None:
    settings = load(
        SequencerSettings, flags={"node.heartbeat_ms": "100", "listen": "127.0.0.1:0", **RUNNING}
    ).settings
    node = oc.Node(**settings.node_arguments(), bootstrap=True)
    assert node.name.endswith("-0")


def test_a_key_is_read_from_its_file(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text(" the key\n")
    assert SequencerSettings(key_file=str(file)).given_key("other") == "the key"
    assert SequencerSettings().given_key("other") == "other"


# -- of a node ------------------------------------------------------------------------------------

MEMBER = {"group": "orders,prices", "protocol": "two_layered", **RUNNING}


def test_a_node_says_its_site_in_every_layer_and_its_options_are_those_of_a_node(
    tmp_path: Path,
) -> None:
    file = written(tmp_path, 'site = "osaka"\ngateway = true\ngroup = ["orders"]\n')
    loaded = load(NodeSettings, file, {"ORDERCAST_SITE": "tokyo"}, MEMBER)
    assert loaded.settings.group == ("orders", "prices")
    assert loaded.places["site"] == "$ORDERCAST_SITE"
    arguments = loaded.settings.node_arguments()
    assert (arguments["site"], arguments["gateway"]) == ("tokyo", True)
    assert oc.Node(**arguments, bootstrap=True).name


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (
            {"gateway": True},
            "gateway without site: name the site of the gateway, as site = 'tokyo'",
        ),
        ({"site": "to\nkyo"}, "the site name 'to\\nkyo' contains a control character"),
        ({"sites": "tokyo"}, "there is no 'sites'; did you mean 'site'?"),
        ({"group": ""}, "no group: list in group what this node is to join"),
        ({"group": "a\u0007"}, "the group name 'a\\x07' contains a control character"),
        ({"protocol": "two_layerd"}, "unknown protocol 'two_layerd'"),
        ({"protocol": ""}, "say which order the group needs"),
        ({"delivery_level": "acked"}, "write 'causal' or 'preack' or 'ack'"),
        ({"node.site": "tokyo"}, "there is no 'node.site'"),
        ({"drain_timeout": 3.0}, "there is no 'drain_timeout'"),
    ],
)
def test_wrong_settings_of_a_node_are_refused(flags: dict[str, object], said: str) -> None:
    with pytest.raises(ConfigError) as refused:
        load(NodeSettings, flags={**MEMBER, **flags})
    assert said in str(refused.value)
