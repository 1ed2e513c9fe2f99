#!/bin/sh
# release.sh [--build] [--tag]: a release up to its upload, which stays with people (docs/stability.md). Without an option it
# checks that the version, the changelog and the tree fit together, and says what would follow. --build packs the crates for authors
# and the packages of this machine; --tag makes the annotated tag in this clone. Nothing is uploaded, published or pushed.
set -eu
cd "$(dirname "$0")/.."

build='' tag='' failed=''
for option; do
    case $option in
    --build) build=1 ;;
    --tag) tag=1 ;;
    *) echo "usage: scripts/release.sh [--build] [--tag]" >&2; exit 2 ;;
    esac
done
# wrong WHAT: a thing to correct; all of them are named.
wrong() {
    echo "not ready for a release: $1" >&2
    failed=1
}
# said_in FILE: the first version that a TOML file states.
said_in() { sed -n 's/^version = "\(.*\)"$/\1/p' "$1" | head -n 1; }

version=$(said_in Cargo.toml)
name=v$version
echo "release $version"

for file in examples/*/Cargo.toml toolboxes/robot-r2r/Cargo.toml programs/python/pyproject.toml python/*/pyproject.toml; do
    found=$(said_in "$file")
    [ "$found" = "$version" ] || wrong "$file has version $found, expected $version"
done
stale=$(grep -n 'path = .*version = "' Cargo.toml | grep -v "version = \"$version\"" || true)
[ -z "$stale" ] || wrong "Cargo.toml: these name another version than $version: $stale"
stale=$(grep -n 'ovos-tools-[a-z-]*==' python/*/pyproject.toml | grep -v "==$version\"" || true)
[ -z "$stale" ] || wrong "these need another version than $version: $stale"

# section VERSION: what the changelog has below its heading.
section() { awk -v heading="## $1" '$0 == heading {on = 1; next} /^## / {on = 0} on' CHANGELOG.md; }
section "$version" | grep -q '^- ' || wrong "CHANGELOG.md has no section \"## $version\" with changes"
if section Unreleased | grep -q '[^ ]'; then wrong "CHANGELOG.md has changes under \"Unreleased\": move them below \"## $version\""; fi

[ -z "$(git status --porcelain)" ] || wrong "the tree has changes that are not committed: git status"
tagged=$(git rev-parse --quiet --verify "refs/tags/$name^{commit}" || true)
if [ -n "$tagged" ] && [ "$tagged" != "$(git rev-parse HEAD)" ]; then
    wrong "the tag $name exists and is another commit: raise the version"
fi
cargo metadata --locked --offline --no-deps --format-version 1 >/dev/null 2>&1 ||
    wrong "Cargo.lock does not fit Cargo.toml: cargo update --workspace"

[ -z "$failed" ] || exit 1
echo "version, changelog and tree fit together"

if [ -n "$build" ]; then
    scripts/registry.sh
    make package
    scripts/package-check.sh
else
    echo "not built: --build packs the crates (scripts/registry.sh) and the packages (make package), and tries them"
fi
if [ -z "$tag" ]; then
    echo "not tagged: --tag makes the tag $name in this clone"
elif [ -n "$tagged" ]; then
    echo "tagged already: $name"
else
    section "$version" | git tag --annotate --cleanup=whitespace --file=- "$name"
    echo "tagged $name in this clone; not pushed"
fi

echo "what is left, by hand:"
echo "  git push origin $name"
echo "  upload target/packages (make release-check makes those of all machines)"
sed -n 's/^crates="\(.*\)"$/\1/p' scripts/registry.sh | tr ' ' '\n' | sed 's/^/  cargo publish --locked --package /'
for package in python/*; do echo "  python -m build $package, and upload it to PyPI"; done
