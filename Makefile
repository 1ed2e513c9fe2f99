# Thin on purpose: what takes more than two commands is in scripts/.
PREFIX ?= /usr/local
DESTDIR ?=
MINUTES ?= 20
RUNS ?= 10000000
TARGET := $(or $(CARGO_TARGET_DIR),target)
TOOLBOXES := examples/hello examples/hello_c toolboxes/math toolboxes/robot toolboxes/ros toolboxes/drone toolboxes/gstreamer
# Expanded where a program is built, because the other targets need no shell for it.
PROGRAMS = $(shell scripts/programs.sh --package)
TESTBED := tests/toolboxes/testbed tests/toolboxes/testbed_dup

.PHONY: run test check bench soak proofs fuzz plugins testbed tests venv peers mavsdk install package release-check setup

run: setup  ## build and serve, with a bus of its own where none listens; large toolboxes are built and loaded meanwhile
	scripts/run.sh

test: setup  ## every test
	@# What is downloaded and what is compiled do not wait for each other.
	$(MAKE) --no-print-directory -j2 peers tests
	scripts/test.sh

check:  ## what a change has to pass before it is committed
	cargo fmt --check
	@# The lock files of what the workspace leaves out: who changes a dependency sees here that they are behind.
	for lock in $(wildcard */Cargo.lock toolboxes/*/Cargo.lock); do \
		cargo metadata --locked --format-version 1 --manifest-path $${lock%.lock}.toml >/dev/null || exit 1; done
	members=$$(scripts/members.sh) && cargo clippy $$members --locked --all-targets -- -D warnings
	members=$$(scripts/members.sh) && RUSTDOCFLAGS="-D warnings" cargo doc $$members --locked --no-deps --quiet
	scripts/check-fuzz.sh
	scripts/registry.sh
	if command -v cargo-deny >/dev/null; then cargo deny --workspace --log-level error check licenses; else scripts/skip.sh cargo-deny "it is not installed"; fi

bench: setup venv  ## tables of ratios, goals beside them
	scripts/plugins.sh release $(TARGET)/bench-toolboxes $(TOOLBOXES) && scripts/plugins.sh release $(TARGET)/bench-plugins $(TESTBED)
	cargo build --release --locked $(PROGRAMS)
	members=$$(scripts/members.sh) && cargo bench $$members --locked --bench '*'

soak: venv testbed  ## everything at once for MINUTES (20): no call lost, no leak
	scripts/soak.sh $(MINUTES)

proofs: venv testbed  ## the long version of what crashes and stops must not do; half an hour
	SERVO_RUNS=1000 cargo test --locked -p robot --lib late -- --nocapture
	LATE_RUNS=120 cargo test --locked -p robot --test johnny5 late -- --nocapture
	ROBOT_STOPS=20 cargo test --locked --test packaged a_stop_is_heard -- --nocapture
	ROBOT_STOPS=100 cargo test --locked -p robot --test dds_robots a_halt_is_the_last_word -- --nocapture
	CRASHES=200 MOMENTS=50 cargo test --locked --test process_isolation -- --nocapture
	MISSIONS=200 STOPS=100 cargo test --locked -p drone --test fake_mavsdk random_missions:: -- --nocapture
	FABRIC_SEEDS=200 cargo test --locked --test programs nothing_moves_and_no_call_is_lost_when_what_is_between -- --nocapture
	FILM_SECONDS=60 cargo test --locked --manifest-path toolboxes/gstreamer/Cargo.toml --test gstreamer eleven -- --nocapture
	APPROACHES=20 DRONE_CALLS=2500 cargo test --locked -p drone --test fake_mavsdk -- approach:: random_calls:: --nocapture

fuzz: setup  ## libFuzzer on everything that reads from outside, RUNS (10000000) inputs each; needs a nightly toolchain
	scripts/fuzz.sh $(RUNS)

plugins: setup  ## the toolboxes that come with the service, into plugins/
	scripts/plugins.sh release plugins $(TOOLBOXES)

testbed: setup  ## the toolboxes only tests use
	scripts/plugins.sh debug $(TARGET)/testbed-plugins $(TESTBED)
	scripts/plugins.sh debug $(TARGET)/robot-plugins toolboxes/robot
	scripts/plugins.sh debug $(TARGET)/ros-plugins toolboxes/ros
	scripts/plugins.sh debug $(TARGET)/drone-plugins toolboxes/drone
	scripts/testbed-versions.sh 4 $(TARGET)/testbed-versions

venv:  ## the Python packages the tests talk to, in .venv
	scripts/setup.sh --with-python
	scripts/venv.sh

tests: testbed  ## the programs of all tests
	members=$$(scripts/members.sh) && cargo test --quiet --locked --no-run $$members

peers: venv  ## what the tests talk to
	scripts/setup.sh --with-browser

mavsdk:  ## mavsdk_server, which the toolbox drone needs for every vehicle, in .venv-mavsdk
	@scripts/setup.sh --with-python
	@scripts/venv.sh mavsdk || echo "skipped: the drone's tools answer \"mavsdk_server was not found\" until \`make mavsdk\` works (it needs PyPI)" >&2

setup:
	@scripts/setup.sh

install: plugins  ## PREFIX and DESTDIR as usual
	cargo build --release --locked --package ovos-tools $(PROGRAMS)
	scripts/install.sh "$(DESTDIR)" "$(PREFIX)"

package: setup  ## a tar.gz, two .deb and a wheel with SHA256SUMS, for this machine, in target/packages
	rm -rf $(TARGET)/package-plugins && scripts/plugins.sh release $(TARGET)/package-plugins $(TOOLBOXES)
	cargo build --release --locked --package ovos-tools $(PROGRAMS)
	PLUGINS=$(TARGET)/package-plugins scripts/package.sh release

release-check:  ## the packages of x86_64, aarch64 and armv7 for old systems, each installed and tried in an empty one; an hour or two
	scripts/release-check.sh
