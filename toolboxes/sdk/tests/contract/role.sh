#!/bin/sh
# Stands in for `ovos-tools toolbox-host --role NAME`: the test NAME of the program ROLE_TESTS is the process. It finds its name
# as the third argument, as the real one does.
exec "$ROLE_TESTS" --exact --nocapture "$3" --ignored
