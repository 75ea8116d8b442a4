# Shared by the scripts in this folder; source it, don't run it.
# Sets `root` (the checkout) and `build`, and works from any directory.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=$root/build

# The packages that building needs (docs/Dependencies.md says what each is for).
build_packages=(clang-22 lld-22 llvm-22-dev libmlir-22-dev mlir-22-tools
  cmake ninja-build ccache nlohmann-json3-dev libgtest-dev)
test_packages=(clang-format-22 python3-dev python3-venv fortunes
  pkgconf libopenmpi-dev openmpi-bin libmpich-dev mpich)
tidy_packages=(clang-tidy-22)
text_packages=(fortunes)
# The text of the `fortunes` package: real English, about 2.5 MB.
text_folder=/usr/share/games/fortunes

# Installed if Debian offers it: some tests render pages in it.
browser_package=chromium

say() { printf '\033[1m==>\033[0m %s\n' "$*"; }
die() {
  printf 'error: %s\n' "$*" >&2
  exit 1
}

# Fails if a first build has no room for the given number of GB in $build: a disk that
# becomes full ends the linker with a bus error.
need_space() {
  local free
  [ ! -e "$build" ] || return 0
  free=$(df -Pk "$root" | awk 'NR == 2 { print int($4 / 1e6) }')
  [ "$free" -ge "$1" ] || die "expected $1 GB of free space for $build but got $free GB"
}

# Installs those of the given Debian packages that are missing.
install_packages() {
  local package missing=() sudo=()
  for package in "$@"; do
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || missing+=("$package")
  done
  [ ${#missing[@]} -gt 0 ] || return 0
  command -v apt-get >/dev/null || die "expected Debian packages but found no apt-get; install by hand: ${missing[*]}"
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || die "expected root or sudo to install packages; install by hand: ${missing[*]}"
    sudo=(sudo)
  fi
  say "Installing Debian packages: ${missing[*]}"
  "${sudo[@]}" apt-get update -qq
  for package in "${missing[@]}"; do
    apt-cache show "$package" >/dev/null 2>&1 ||
      die "no Debian package $package; LLVM 22 is in Debian 12's security archive (bookworm-security), check that apt reads it"
  done
  "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}

# Installs a package if Debian offers it; without it some tests do not run.
install_if_offered() {
  if apt-cache show "$1" >/dev/null 2>&1; then install_packages "$1"; else say "No package $1: the tests that want it do not run"; fi
}

# ccache caches compilations with a precompiled header only if it may ignore the
# header's defines and the time macros, of which this project has none.
ccache_settings=CCACHE_SLOPPINESS=pch_defines,time_macros

# Configures build/. FP8_WERROR=ON in the environment makes warnings errors.
configure() {
  say "Configuring $build (warnings are errors: ${FP8_WERROR:-OFF})"
  local log=$build/configure.log
  mkdir -p "$build"
  cmake -G Ninja -S "$root" -B "$build" \
    -DCMAKE_C_COMPILER=clang-22 -DCMAKE_CXX_COMPILER=clang++-22 \
    -DCMAKE_EXE_LINKER_FLAGS=-fuse-ld=lld-22 -DCMAKE_SHARED_LINKER_FLAGS=-fuse-ld=lld-22 \
    -DCMAKE_MODULE_LINKER_FLAGS=-fuse-ld=lld-22 \
    -DCMAKE_C_COMPILER_LAUNCHER=ccache "-DCMAKE_CXX_COMPILER_LAUNCHER=env;$ccache_settings;ccache" \
    -DFP8_WERROR="${FP8_WERROR:-OFF}" -DFP8_PYTHON="${FP8_PYTHON:-$build/venv/bin/python}" >"$log" 2>&1 || {
    tail -30 "$log" >&2
    die "CMake failed; the whole output is in $log"
  }
}

# Filters ninja's output where stdout is no terminal: prints a line for each tenth
# of the build.
show_progress() {
  local line tenth shown=0
  while IFS= read -r line; do
    [[ $line =~ ^\[([0-9]+)/([0-9]+)\] ]] || continue
    tenth=$((10 * BASH_REMATCH[1] / BASH_REMATCH[2]))
    [ "$tenth" -gt "$shown" ] || continue
    shown=$tenth
    printf '    %d of %d after %d s\n' "${BASH_REMATCH[1]}" "${BASH_REMATCH[2]}" "$SECONDS"
  done
}

# Builds the given targets, or everything.
build_targets() {
  say "Building ${*:-everything}"
  local log=$build/build.log
  if [ -t 1 ]; then
    ninja -C "$build" "$@"
  else
    ninja -C "$build" "$@" 2>&1 | tee "$log" | show_progress || {
      grep -E 'FAILED|error:|warning:' -A4 "$log" | head -60 >&2
      die "the build failed; the whole output is in $log"
    }
  fi
}

# Makes a virtual environment with JAX for the tests and benchmarks; the compiler never needs it.
make_venv() {
  local requirements=$root/test/requirements.txt stamp=$build/venv/requirements.txt
  if [ -n "${FP8_PYTHON:-}" ]; then
    say "Using $FP8_PYTHON for the tests that need JAX"
    return
  fi
  cmp -s "$requirements" "$stamp" && return
  say "Installing JAX from PyPI into $build/venv"
  /usr/bin/python3 -m venv --clear "$build/venv"
  "$build/venv/bin/pip" install -q --disable-pip-version-check -r "$requirements"
  cp "$requirements" "$stamp"
}

# Checks that every C++ source is formatted as clang-format-22 does it.
check_format() {
  say "Checking the format of the C++ sources"
  (cd "$root" && git ls-files -z -- '*.cpp' '*.h' '*.c' | xargs -0 clang-format-22 --dry-run -Werror)
}

# Runs clang-tidy on the given sources, or on all of lib/ and tools/ in the batches of
# scripts/tidy_batches.py. Batches leave out one check, that of the order of headers,
# because each source begins with its own header. clang-format checks the order.
check_tidy() {
  say "Running clang-tidy on ${*:-lib/ and tools/}"
  [ -e "$build/compile_commands.json" ] || die "expected $build/compile_commands.json; build first"
  (
    cd "$root"
    if [ $# -gt 0 ]; then
      single_commands
      printf '%s\0' "$@" | tidy_each "$build/tidy"
    else
      # Without ranges of LLVM as lib/Runtime/.clang-tidy and lib/Binding/.clang-tidy say.
      python3 scripts/tidy_batches.py "$root" "$build" &&
        tidy_batches plain -llvm-include-order,-llvm-use-ranges && tidy_batches llvm -llvm-include-order
    fi
  ) || die "clang-tidy has complaints; see above"
}

# Runs clang-tidy on all batches of a kind, without the given checks.
tidy_batches() {
  find "$build/tidy-batches/$1" -name '*.cpp' -print0 |
    tidy_each "$build/tidy-batches" --config-file="$root/.clang-tidy" --checks="$2" \
      --header-filter="^$root/((include/fp8|lib|tools)/.*\.h|(lib|tools)/.*\.cpp)\$"
}

# Makes $build/tidy/compile_commands.json, which compiles each source alone, with the
# generated and precompiled headers of $build.
single_commands() {
  cmake -G Ninja -S "$root" -B "$build/tidy" $(sed -n 's/^\(CMAKE_C\w*_COMPILER\|FP8_PYTHON\|MLIR_DIR\):\w*=/-D\1=/p' "$build/CMakeCache.txt") \
    -DFP8_UNITY_BUILD=OFF >"$build/tidy.log" 2>&1 || die "CMake failed; the whole output is in $build/tidy.log"
  sed -i "s#$build/tidy/#$build/#g" "$build/tidy/compile_commands.json"
}

# Runs clang-tidy with the commands of a folder and the given options on each source
# that it reads.
tidy_each() {
  xargs -0 -n 1 -P "$(nproc)" clang-tidy-22 --quiet -p "$@" 2> >(grep -v 'warnings\? generated\.$' >&2)
}
