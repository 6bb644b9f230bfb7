"""What runs around an installation: schema, topics, and the test of the release."""

import json
from pathlib import Path

import pytest

from schemas.topics import TopicNames
from tallyhook.operations.topics import specs
from tallyhook.settings import Installation, load
from tests.unit.packaging.helm import Helm, Manifest, Workload, of_kind, workloads
from tests.unit.packaging.tree import CHART, EXAMPLES, VALUE_SETS
from tests.unit.packaging.written import TOPICS, topics_list

SINGLE, REPLICATED = EXAMPLES
EVERYTHING, TEST_MODE = VALUE_SETS["everything"], VALUE_SETS["test mode"]


def jobs(manifests: list[Manifest]) -> dict[str, Workload]:
    """The jobs by name, without the release's."""
    found = [work for work in workloads(manifests) if work.kind == "Job"]
    return {work.manifest["metadata"]["name"].removeprefix("shop-tallyhook-"): work for work in found}


def hook(work: Workload) -> tuple[str, int]:
    """When Helm runs it, and its weight."""
    annotations = work.manifest["metadata"]["annotations"]
    return annotations["helm.sh/hook"], int(annotations["helm.sh/hook-weight"])


def test_jobs_run_before_the_release_and_in_order(helm: Helm) -> None:
    """The schema comes before the topics, which are recorded in it; none needs an object that comes later."""
    found = jobs(helm.render(SINGLE))
    assert {name: hook(work) for name, work in found.items()} == {
        "migrate": ("pre-install,pre-upgrade", 0),
        "topics": ("pre-install,pre-upgrade", 5),
        "migrate-after": ("post-upgrade", 0),
    }
    assert all("envFrom" not in work.container for work in found.values())


def test_an_upgrade_migrates_in_two_phases(helm: Helm) -> None:
    """First what the version that still runs can live with, the rest when it is gone.

    It is the same for an installation, as which Argo CD renders every upgrade: a new schema is made whole by the first.
    """
    for options in ((), ("--is-upgrade",)):
        found = jobs(helm.render(SINGLE, options=options))
        assert found["migrate"].container["args"] == ["migrate", "--phase", "pre"]
        assert found["migrate-after"].container["args"] == ["migrate", "--phase", "post"]


def test_a_failed_job_stays_for_its_log(helm: Helm) -> None:
    """It goes when it succeeded, or when its successor comes."""
    for work in jobs(helm.render(SINGLE)).values():
        policy = work.manifest["metadata"]["annotations"]["helm.sh/hook-delete-policy"]
        assert policy == "before-hook-creation,hook-succeeded"
        assert work.manifest["spec"]["activeDeadlineSeconds"] == 600


def test_jobs_can_be_left_out(helm: Helm) -> None:
    """Where a DBA migrates and a platform team makes topics, the chart runs neither."""
    found = workloads(helm.render(SINGLE, "jobs.migrate.enabled=false", "jobs.topics.enabled=false"))
    assert [work.component for work in found if work.kind == "Job"] == []


def test_the_list_of_topics_is_in_step() -> None:
    """The chart makes the topics that the program makes, configured alike."""
    assert TOPICS.read_text(encoding="utf-8") == topics_list(), "run `python -m tests.unit.packaging.written`"


def topics(manifests: list[Manifest]) -> dict[str, Manifest]:
    """Strimzi's resources by the topic's name."""
    return {m["spec"]["topicName"]: m for m in manifests if m["kind"] == "KafkaTopic"}


@pytest.mark.parametrize("durability", ["single-node", "replicated"])
def test_strimzi_makes_what_the_program_would(helm: Helm, durability: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every topic with partitions, replicas and configuration that `topics apply` finds right."""
    found = topics(helm.render(EVERYTHING, f"installation.durability={durability}", "installation.partitions=12"))
    monkeypatch.setenv("TALLYHOOK_DURABILITY", durability)
    settings = load()
    copies, in_sync = {"single-node": (1, "1"), "replicated": (3, "2")}[durability]
    assert set(found) == {spec.name for spec in specs(settings)}
    for spec in specs(settings):
        made = found[spec.name]["spec"]
        assert (made["partitions"], made["replicas"]) == (12, copies)
        assert made["config"] == spec.config | {"min.insync.replicas": in_sync}


def test_topics_outlive_the_release(helm: Helm) -> None:
    """The operator deletes the topic of a resource that goes, and with it the events."""
    for topic in topics(helm.render(EVERYTHING)).values():
        assert topic["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep"
        assert topic["metadata"]["labels"]["strimzi.io/cluster"] == "main"
        assert topic["metadata"]["namespace"] == "kafka"


def test_two_releases_share_no_topic(helm: Helm) -> None:
    """Where a door puts test events is made by its release; the one that reads them makes the others."""
    strimzi = ("strimzi.enabled=true", "strimzi.cluster=main")
    live, test = topics(helm.render(SINGLE, *strimzi)), topics(helm.render(TEST_MODE, *strimzi))
    own, tests_own = (
        TopicNames(Installation(topic_prefix=name).topic_prefix) for name in ("tallyhook", "tallyhook.test")
    )
    assert set(live) & set(test) == set()
    assert set(live) | set(test) == {spec.name for names in (own, tests_own) for spec in names.specs()}


def test_the_operators_newer_api(helm: Helm) -> None:
    """Where the cluster has v1 of Strimzi's API it is used."""
    newer = helm.render(EVERYTHING, options=["--api-versions", "kafka.strimzi.io/v1/KafkaTopic"])
    assert {topic["apiVersion"] for topic in topics(newer).values()} == {"kafka.strimzi.io/v1"}
    assert {topic["apiVersion"] for topic in topics(helm.render(EVERYTHING)).values()} == {"kafka.strimzi.io/v1beta2"}


def test_topics_are_recorded_beside_the_operator(helm: Helm) -> None:
    """The operator works after the hooks, and `--wait` waits for pods that wait for the record: so it is no hook."""
    found = [work for work in workloads(helm.render(EVERYTHING)) if work.component == "topics"]
    (job,) = found
    assert job.manifest["metadata"]["name"] == "shop-payments-topics-1"
    assert "helm.sh/hook" not in job.manifest["metadata"]["annotations"]


def probe(helm: Helm, values: Path, *sets: str) -> Workload:
    """The pod of `helm test`."""
    (found,) = (work for work in workloads(helm.render(values, *sets)) if work.component == "test")
    return found


def test_the_release_is_tested_by_an_event(helm: Helm) -> None:
    """A new test event each time, at the door of the live release, judged in the schema of this one."""
    work = probe(helm, TEST_MODE)
    assert work.manifest["metadata"]["annotations"]["helm.sh/hook"] == "test"
    command, event, *options = work.container["args"]
    assert command == "send"
    given = dict(zip(options[1::2], options[2::2], strict=True))
    assert options[0] == "--fresh"
    assert given == {
        "--url": "http://shop-tallyhook-ingress/webhooks",
        "--key-file": "/etc/tallyhook/signing-key/signing-key",
        "--await-verdict": "60",
    }
    assert work.environment["TALLYHOOK_SCHEMA"] == "tallyhook_test"
    assert work.environment["TALLYHOOK_TOPIC_PREFIX"] == "tallyhook.test"
    assert work.pod["activeDeadlineSeconds"] > 60
    assert event == "/etc/tallyhook/probe/event.json"


def test_a_live_release_can_test_itself(helm: Helm) -> None:
    """By its own door; the verdict comes in the other installation's schema."""
    work = probe(helm, EVERYTHING)
    assert "http://shop-payments-ingress:80/webhooks" in work.container["args"]
    assert work.environment["TALLYHOOK_SCHEMA"] == "tallyhook_test"


def test_the_probe_is_a_test_event(helm: Helm) -> None:
    """It can move no real money, and its numbers are its merchant's alone."""
    event = json.loads(of_kind(helm.render(TEST_MODE), "ConfigMap")["test"]["data"]["event.json"])
    assert event["livemode"] is False
    assert event["account"]["merchant_id"] == "tallyhook-probe"
    assert "MERCHANT" in (CHART / "files" / "probe-event.json").read_text(encoding="utf-8")
