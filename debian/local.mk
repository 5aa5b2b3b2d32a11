# SPDX-License-Identifier: Apache-2.0
# The Debian packages, made by scripts/package; a release holds what they are made from.
EXTRA_DIST += \
	debian/changelog \
	debian/clean \
	debian/control \
	debian/copyright \
	debian/librlock-dev.docs \
	debian/librlock-dev.examples \
	debian/librlock-dev.install \
	debian/librlock0.install \
	debian/librlock0.lintian-overrides \
	debian/librlock0.symbols \
	debian/not-installed \
	debian/rlock-guard.install \
	debian/rlock-guard.postinst \
	debian/rlock-guard.postrm \
	debian/rlock-tools.docs \
	debian/rlock-tools.examples \
	debian/rlock-tools.install \
	debian/rules \
	debian/source/format \
	debian/source/options \
	debian/tests/command \
	debian/tests/control \
	debian/tests/guard \
	debian/tests/program \
	scripts/package
