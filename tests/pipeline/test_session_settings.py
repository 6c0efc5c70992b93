"""Where a session runs decides what it may assume."""

from __future__ import annotations

from ordercast.pipeline.session import settings


def test_on_this_machine_the_driver_is_reached_over_loopback():
    assert settings("local[*]", small=True)["spark.driver.host"] == "127.0.0.1"


def test_on_a_cluster_the_address_of_the_driver_is_left_to_spark():
    assert not [key for key in settings("spark://host:7077", small=False) if "ddress" in key]
    assert "spark.driver.host" not in settings("spark://host:7077", small=False)
