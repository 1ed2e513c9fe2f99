#!/bin/sh
# docs.sh DESTINATION: copies the pages for people, in the folders where they lie here, with every file that one of them links to, so
# that no link is dead.
set -eu
cd "$(dirname "$0")/.."

destination=$1

copy() {
    install -D -m 644 "$1" "$destination/$1"
}

# links PAGE: what a page links to, relative to the root of this tree; not what is elsewhere, nor places within the page.
links() {
    grep -o '](\([^)]*\))' "$1" | sed 's/^](//; s/)$//; s/#.*//' | grep -v '^[a-z]*:' | grep -v '^$' | while read -r link; do
        realpath -m --relative-to=. "$(dirname "$1")/$link"
    done
}

for page in README.md CONTRIBUTING.md ARCHITECTURE.md CHANGELOG.md docs/*.md docs/decisions/*.md examples/README.md plugins/README.md programs/*/README.md python/*/README.md toolboxes/*/README.md sims/*/README.md; do
    copy "$page"
    links "$page" | while read -r target; do
        if [ -d "$target" ]; then
            find "$target" -type f ! -path '*/target/*' ! -name '*.pyc' | while read -r file; do copy "$file"; done
        elif [ -e "$target" ]; then
            copy "$target"
        fi
    done
done
copy mycroft.conf.example
find schemas -type f | while read -r file; do copy "$file"; done
