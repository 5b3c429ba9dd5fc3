"""What an operator types first: nothing is deleted unsaid, nothing begun where it was not meant."""

from instance import TWO, Instance


def test_a_file_in_between_takes_no_history(instance: Instance) -> None:
    """It once deleted all of it, without a word."""
    instance.succeed("start")
    instance.succeed("restart", "--no-file")
    instance.succeed("delete", "routes", "one")
    *_, first = instance.succeed("history").splitlines()
    assert "- route one" in first
    left = instance.succeed("get", "routes")
    instance.succeed("import", str(instance.file))
    instance.succeed("restart", file=str(instance.file))
    assert instance.status()["file"] == str(instance.file)
    instance.file.write_text(TWO.format(url="http://127.0.0.1:1"))
    instance.succeed("reload")
    instance.succeed("restart", "--no-file")
    _, newest, *_, oldest = instance.succeed("history").splitlines()
    assert "route two" in newest
    assert oldest == first
    instance.succeed("rollback", first.split()[0])
    assert instance.succeed("get", "routes") == left
