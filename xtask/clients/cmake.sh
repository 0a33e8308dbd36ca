#!/bin/sh
# Drives CMake on the libuv under test: `cmake.sh CHECK`, in an empty directory.
#
# ctest runs its tests on the loop: processes, pipes and timers. cmake itself uses it for
# execute_process, for the processes of try_compile, and in its server.
set -eu
check=$1

mkdir source
cat >source/CMakeLists.txt <<'LISTS'
cmake_minimum_required(VERSION 3.18)
project(lamp C)
execute_process(COMMAND sh -c "echo out; echo err >&2; exit 3"
  OUTPUT_VARIABLE out ERROR_VARIABLE err RESULT_VARIABLE result)
file(WRITE "${CMAKE_BINARY_DIR}/said" "${out}${err}${result}\n")
execute_process(COMMAND sh -c "echo a b c" COMMAND tr a-z A-Z OUTPUT_VARIABLE piped)
file(APPEND "${CMAKE_BINARY_DIR}/said" "${piped}")
execute_process(COMMAND sleep 100 TIMEOUT 0.2 RESULT_VARIABLE late)
file(APPEND "${CMAKE_BINARY_DIR}/said" "${late}\n")
include(CheckFunctionExists)
check_function_exists(printf HAVE_PRINTF)
add_executable(lamp lamp.c)
enable_testing()
add_test(NAME passes COMMAND lamp 0)
add_test(NAME fails COMMAND lamp 1)
set_tests_properties(fails PROPERTIES WILL_FAIL TRUE)
add_test(NAME speaks COMMAND lamp 0)
set_tests_properties(speaks PROPERTIES PASS_REGULAR_EXPRESSION "on with 0")
add_test(NAME late COMMAND sleep 100)
set_tests_properties(late PROPERTIES TIMEOUT 1)
foreach(n RANGE 1 20)
  add_test(NAME many${n} COMMAND lamp 0)
endforeach()
LISTS
cat >source/lamp.c <<'C'
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char** argv) {
  int status = argc > 1 ? atoi(argv[1]) : 0;
  printf("on with %d\n", status);
  return status;
}
C

expect() {
    if [ "$1" != "$2" ]; then
        echo "$check: '$1' instead of '$2'" >&2
        tail -n 30 log >&2
        exit 1
    fi
}

cmake -S source -B build >log 2>&1 || expect "configure fails" "configure"
case $check in
configure)
    expect "$(tr '\n' ' ' <build/said)" 'out err 3 A B C Process terminated due to timeout '
    grep -q 'HAVE_PRINTF:INTERNAL=1' build/CMakeCache.txt || expect "no printf" "printf"
    ;;
build)
    cmake --build build --parallel 2 >log 2>&1 || expect "build fails" "build"
    expect "$(build/lamp 5 || true)" "on with 5"
    ;;
ctest)
    cmake --build build >log 2>&1 || expect "build fails" "build"
    status=0
    (cd build && ctest -j4) >log 2>&1 || status=$?
    expect "$status" 8
    expect "$(grep -c 'Passed' log)" 23
    expect "$(grep -c 'Timeout' log)" 2
    expect "$(grep -o '1 tests failed out of 24' log)" '1 tests failed out of 24'
    ;;
esac
