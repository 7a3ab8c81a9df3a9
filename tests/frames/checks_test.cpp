// tests/frames/checks_test.cpp - assertions on frames hold, and fail with what is there
#include "ptxgen/frames/checks.hpp"

#include <catch2/catch.hpp>
#include <filesystem>

#include "ptxgen/support/error.hpp"
#include "support/temporary_directory.hpp"

using namespace ptxgen;
using namespace ptxgen::frames;

namespace {

constexpr std::string_view kText = "tiles  step 7   \n  %f1 [0] 1.5 \n\n";

}  // namespace

TEST_CASE("frames: contains, regular expression, exact line, size") {
  CHECK(contains(kText, "step 7"));
  CHECK(contains(kText, "step 8").message ==
        "no line contains 'step 8':\n  | tiles  step 7\n  |   %f1 [0] 1.5\n  | ");
  // No piece reaches over the end of a line.
  CHECK_FALSE(contains(kText, "7   \n"));
  CHECK(matches(kText, "^tiles +step [0-9]+$"));
  CHECK_FALSE(matches(kText, "^step"));
  CHECK(matches(kText, "^step").message.starts_with("no line matches '^step':"));
  CHECK(matches(kText, "(").message.starts_with("'(' is no regular expression: "));
  CHECK(line_is(kText, 2, "  %f1 [0] 1.5"));
  CHECK(line_is(kText, 3, ""));
  CHECK(line_is(kText, 1, "tiles  step 8").message ==
        "line 1 is 'tiles  step 7', expected 'tiles  step 8'");
  CHECK(line_is(kText, 2, "%f1 [0] 1.5").message ==
        "line 2 is '  %f1 [0] 1.5', expected '%f1 [0] 1.5'");
  CHECK(line_is(kText, 4, "").message == "there is no line 4: the frame has 3 lines");
  CHECK(line_is(kText, 0, "").message == "there is no line 0: the frame has 3 lines");
  CHECK(size_is("ab\ncd\n", 2, 2));
  CHECK(size_is("ab\ncd\n", 2, 3).message == "2 lines, expected 3");
  CHECK(size_is("ab\nc\n", 2, 2).message == "line 2 has 1 column, expected 2");
  CHECK(size_is("", 0, 1).message == "0 lines, expected 1");
}

TEST_CASE("frames: a snapshot is compared, and written only in update mode") {
  const TemporaryDirectory folder;
  const std::string path = folder.file("frame.txt");
  CHECK(snapshot_is("a\nb\n", path).message ==
        "there is no snapshot '" + path + "'; write it with SnapshotMode::Update, then read it");
  CHECK_FALSE(std::filesystem::exists(path));
  CHECK(snapshot_is("a  \nb\n", path, SnapshotMode::Update));
  CHECK(read_file(path) == "a\nb\n");
  CHECK(snapshot_is("a\nb   \n", path));
  CHECK(snapshot_is("a\nc\n", path).message ==
        "line 2 is 'c', in the snapshot '" + path +
            "' 'b'; SnapshotMode::Update writes the new frame");
  CHECK(snapshot_is("a\n", path).message.starts_with("line 2 is the end, in the snapshot"));
  CHECK(read_file(path) == "a\nb\n");
  CHECK(snapshot_is("a\nc\n", path, SnapshotMode::Update));
  CHECK(read_file(path) == "a\nc\n");
  CHECK_THROWS_AS(snapshot_is("a\n", folder.file("none/frame.txt"), SnapshotMode::Update), Error);
}
