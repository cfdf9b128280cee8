"""The commit of a checkout, read from the files of `.git`."""

from structjax.provenance import commit_of

COMMIT = "0123456789abcdef0123456789abcdef01234567"


def checkout(path, head):
    git = path / ".git"
    (git / "refs" / "heads").mkdir(parents=True)
    (git / "HEAD").write_text(head + "\n")
    return git


def test_a_branch_a_packed_branch_and_a_bare_commit(tmp_path):
    git = checkout(tmp_path / "a", "ref: refs/heads/main")
    (git / "packed-refs").write_text(f"# pack-refs\n{COMMIT} refs/heads/main\n")
    assert commit_of(tmp_path / "a") == COMMIT
    (git / "refs" / "heads" / "main").write_text("f" * 40 + "\n")
    assert commit_of(tmp_path / "a") == "f" * 40
    checkout(tmp_path / "b", COMMIT)
    assert commit_of(tmp_path / "b") == COMMIT
    assert commit_of(tmp_path) is None


def test_a_linked_worktree_shares_the_branches_of_its_repository(tmp_path):
    git = checkout(tmp_path / "main", "ref: refs/heads/main")
    (git / "refs" / "heads" / "side").write_text(COMMIT + "\n")
    own = git / "worktrees" / "side"
    own.mkdir(parents=True)
    (own / "HEAD").write_text("ref: refs/heads/side\n")
    (own / "commondir").write_text("../..\n")
    (tmp_path / "side").mkdir()
    (tmp_path / "side" / ".git").write_text(f"gitdir: {own}\n")
    assert commit_of(tmp_path / "side") == COMMIT
