"""The files that say how the project is cited, changed, contributed to and released."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml

import bert_tf

ROOT = Path(__file__).resolve().parents[1]
GITHUB = ROOT / ".github"
FORMS = ("bug_report.yml", "feature_request.yml")
RELEASE = re.compile(r"^## \[([^\]]+)\](?: - (\d{4}-\d{2}-\d{2}))?$", re.MULTILINE)


def read(name):
    return (ROOT / name).read_text()


def project():
    return tomllib.loads(read("pyproject.toml"))["project"]


def releases():
    """The versions of the changelog with their dates, newest first."""
    return RELEASE.findall(read("CHANGELOG.md"))


def test_the_newest_release_of_the_changelog_is_this_version():
    (unreleased, no_date), *released = releases()

    assert (unreleased, no_date) == ("Unreleased", "")
    assert released[0][0] == bert_tf.__version__
    assert released == sorted(released, key=lambda each: each[0].split("."), reverse=True)
    assert [date for _, date in released] == sorted((date for _, date in released), reverse=True)


def test_the_changelog_has_only_the_sections_of_its_form():
    found = re.findall(r"^### (.+)$", read("CHANGELOG.md"), re.MULTILINE)

    assert set(found) <= {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}


def test_the_names_that_the_changelog_calls_removed_are_gone():
    removed = read("CHANGELOG.md").partition("### Removed\n")[2].partition("\n###")[0]
    names = re.findall(r"`([A-Z]\w+)`", removed.partition(".")[0])

    assert names and not {*names} & {*bert_tf.__all__}
    assert {*re.findall(r"`([A-Z]\w+)`", removed)} - {*names} <= {*bert_tf.__all__}


def test_the_citation_is_of_this_version():
    citation = yaml.safe_load(read("CITATION.cff"))

    assert {"cff-version", "message", "title", "authors", "version"} <= citation.keys()
    assert citation["title"] == project()["name"]
    assert citation["license"] == project()["license"]
    assert (citation["version"], citation["date-released"]) == releases()[1]
    (paper,) = citation["references"]
    assert [each["family-names"] for each in paper["authors"]][0] == "Devlin"
    assert paper["year"] == 2019


@pytest.mark.parametrize("name", FORMS)
def test_a_form_for_issues_has_what_github_requires(name):
    form = yaml.safe_load((GITHUB / "ISSUE_TEMPLATE" / name).read_text())

    assert {"name", "description", "body"} <= form.keys()
    kinds = [each["type"] for each in form["body"]]
    assert {*kinds} <= {"markdown", "input", "textarea", "dropdown", "checkboxes"}
    fields = [each for each in form["body"] if each["type"] != "markdown"]
    assert fields and all(each["attributes"]["label"] for each in fields)
    assert len({each["id"] for each in fields}) == len(fields)


def test_there_is_a_choice_of_forms_and_a_template_of_pull_requests():
    found = {each.name for each in (GITHUB / "ISSUE_TEMPLATE").iterdir()}
    settings = yaml.safe_load((GITHUB / "ISSUE_TEMPLATE" / "config.yml").read_text())

    assert found == {*FORMS, "config.yml"}
    assert settings["blank_issues_enabled"] in (True, False)
    assert "make test" in (GITHUB / "PULL_REQUEST_TEMPLATE.md").read_text()


def test_the_targets_that_every_change_must_pass_are_named_where_people_contribute():
    required = re.findall(r"^make (\S+)$", read(".ci/run"), re.MULTILINE)

    assert required
    for page in (read("CONTRIBUTING.md"), (GITHUB / "PULL_REQUEST_TEMPLATE.md").read_text()):
        assert all(f"`make {target}`" in page for target in required)


def test_every_target_of_the_checks_on_github_is_explained():
    jobs = (GITHUB / "workflows" / "checks.yml").read_text()
    targets = set(re.findall(r"run: make ([\w-]+)", jobs))

    assert targets
    assert all(f"| `make {target}` |" in read("CONTRIBUTING.md") for target in targets)


def test_the_contributing_page_names_the_supported_pythons():
    versions = [each.split(" :: ")[-1] for each in project()["classifiers"] if "Python ::" in each]
    *first, last = [each for each in versions if each.startswith("3.")]

    assert f"Python {', '.join(first)} or {last}" in read("CONTRIBUTING.md")


def test_the_security_page_supports_this_minor_version():
    supported = re.findall(r"^\| (\S+)\.x \| yes \|$", read("SECURITY.md"), re.MULTILINE)

    assert supported == [bert_tf.__version__.rpartition(".")[0]]


@pytest.mark.parametrize("name", ["changelog", "contributing", "roadmap"])
def test_the_site_includes_the_files_of_the_root(name):
    page = (ROOT / "docs" / "project" / f"{name}.md").read_text()
    (target,) = re.findall(r"^```\{include\} (\S+)$", page, re.MULTILINE)

    assert (ROOT / "docs" / "project" / target).resolve() == ROOT / f"{name.upper()}.md"
    # Links that begin otherwise lead nowhere on the site.
    links = re.findall(r"\]\(([^)]+)\)", read(f"{name.upper()}.md"))
    assert all(each.startswith(("docs/", "https://", "#")) for each in links)
