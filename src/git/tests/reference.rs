use gix::{ObjectId, bstr::BString, protocol::handshake::Ref};

use crate::{
    diagnostic::Describe,
    git::{GitError, Reference, Resolved},
    schema::GitRef,
};

fn id(digit: char) -> ObjectId {
    ObjectId::from_hex(digit.to_string().repeat(40).as_bytes()).unwrap()
}

fn refs() -> Vec<Ref> {
    let name = |name: &str| BString::from(name);
    vec![
        Ref::Symbolic {
            full_ref_name: name("HEAD"),
            target: name("refs/heads/main"),
            tag: None,
            object: id('1'),
        },
        Ref::Direct { full_ref_name: name("refs/heads/main"), object: id('1') },
        Ref::Direct { full_ref_name: name("refs/heads/prod"), object: id('2') },
        Ref::Direct { full_ref_name: name("refs/heads/main-old"), object: id('9') },
        Ref::Direct { full_ref_name: name("refs/tags/light"), object: id('3') },
        Ref::Peeled { full_ref_name: name("refs/tags/v1"), tag: id('5'), object: id('4') },
    ]
}

fn find(reference: &Reference) -> Option<(char, Option<String>)> {
    let found = reference.find(&refs())?;
    Some((found.commit.to_string().chars().next().unwrap(), found.name))
}

#[test]
fn references_lead_to_commits() {
    let name = |name: &str| Some(name.to_owned());
    assert_eq!(find(&Reference::Default), Some(('1', name("refs/heads/main"))));
    assert_eq!(find(&Reference::Branch("main".into())), Some(('1', name("refs/heads/main"))));
    assert_eq!(
        find(&Reference::Branch("refs/heads/prod".into())),
        Some(('2', name("refs/heads/prod")))
    );
    assert_eq!(find(&Reference::Tag("light".into())), Some(('3', name("refs/tags/light"))));
    assert_eq!(find(&Reference::Tag("v1".into())), Some(('4', name("refs/tags/v1"))));
    assert_eq!(find(&Reference::Name("refs/tags/v1".into())), Some(('4', name("refs/tags/v1"))));
    assert_eq!(find(&Reference::Branch("v1".into())), None);
    assert_eq!(find(&Reference::Tag("main".into())), None);
}

#[test]
fn unknown_references_get_a_suggestion() {
    let shown =
        |reference: Reference| reference.unknown("https://h/x", &refs()).describe().to_string();
    assert_eq!(
        shown(Reference::Branch("prdo".into())),
        "unknown branch \"prdo\" of https://h/x (did you mean `prod`?; branches: main, prod, main-old; tags: light, v1)"
    );
    assert!(shown(Reference::Branch("v1".into())).contains("did you mean `tag: v1`?"));
    assert!(shown(Reference::Tag("main".into())).contains("did you mean `branch: main`?"));
    assert!(!shown(Reference::Tag("something".into())).contains("did you mean"));
    let many: Vec<Ref> = (0..30)
        .map(|n| Ref::Direct { full_ref_name: format!("refs/heads/b{n}").into(), object: id('1') })
        .collect();
    let error = Reference::Branch("zzz".into()).unknown("u", &many).describe().to_string();
    assert!(error.contains("b7 and 22 more; no tags"), "{error}");
    assert!(matches!(Reference::Default.unknown("u", &[]), GitError::Empty { .. }));
}

#[test]
fn commits_are_full_hashes() {
    let commit = |text: &str| Reference::Commit(text.into()).commit("u");
    assert_eq!(
        commit(&"A1".repeat(20)),
        Ok(Some(ObjectId::from_hex("a1".repeat(20).as_bytes()).unwrap()))
    );
    for wrong in ["abc1234", "main", "", &"x".repeat(40)] {
        assert!(matches!(commit(wrong), Err(GitError::CommitForm { .. })), "{wrong}");
    }
    assert_eq!(Reference::Default.commit("u"), Ok(None));
}

#[test]
fn revisions_look_like_those_of_flux() {
    let revision = |name: Option<&str>| {
        Resolved { commit: "1".repeat(40), name: name.map(str::to_owned) }.revision()
    };
    let hash = "1".repeat(40);
    assert_eq!(revision(Some("refs/heads/feat/x")), format!("feat/x@sha1:{hash}"));
    assert_eq!(revision(Some("refs/tags/v1")), format!("v1@sha1:{hash}"));
    assert_eq!(revision(Some("refs/pull/7/head")), format!("refs/pull/7/head@sha1:{hash}"));
    assert_eq!(revision(None), format!("sha1:{hash}"));
}

#[test]
fn project_files_choose_one_of_three() {
    let of = |branch: &str, tag: &str, commit: &str| {
        let given = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        let git = GitRef { branch: given(branch), tag: given(tag), commit: given(commit) };
        Reference::from(Some(&git))
    };
    assert_eq!(of("b", "", ""), Reference::Branch("b".into()));
    assert_eq!(of("", "t", ""), Reference::Tag("t".into()));
    assert_eq!(of("", "", "c"), Reference::Commit("c".into()));
    assert_eq!(of("", "", ""), Reference::Default);
    assert_eq!(Reference::from(None), Reference::Default);
}
