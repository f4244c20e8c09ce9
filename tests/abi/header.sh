#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The public header compiles alone, as strict C11 and as C++11 and C++20. usage: header.sh CC SOURCE_DIR
set -euo pipefail
inc=$2/dataplane/libtent/include
echo '#include <tent/tent.h>' | "$1" -x c -std=c11 -Wall -Wextra -pedantic -Werror -fsyntax-only -I"$inc" -
command -v c++ > /dev/null || { echo "no C++ compiler here"; exit 77; }
for std in c++11 c++20; do
	c++ -std=$std -Wall -Wextra -pedantic -Werror -fsyntax-only -I"$inc" "$2/tests/abi/header_cxx.cc"
done
