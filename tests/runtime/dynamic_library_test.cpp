// tests/runtime/dynamic_library_test.cpp - what a library search reports
#include "support/dynamic_library.hpp"

#include <catch2/catch.hpp>
#include <utility>

#include "support/temporary_directory.hpp"

using namespace ptxgen;

namespace {

LibrarySearch nothing_usual() {
  LibrarySearch search;
  search.stem = "libthing.so";
  search.loader_names = {"libthing.so.2", "libthing.so"};
  search.variable = "PTXGEN_THING_PATH";
  search.usual_places = false;
  return search;
}

}  // namespace

TEST_CASE("a library that is nowhere: every place and reason is told", "[library]") {
  const TemporaryDirectory folder;
  LibrarySearch search = nothing_usual();
  search.usual_places = true;
  search.first_folders = {folder.path()};
  search.folders = {"/nowhere/lib"};
  const DynamicLibrary library = DynamicLibrary::find(search);
  CHECK_FALSE(library);
  CHECK(library.symbol("anything") == nullptr);
  CHECK(to_text(library.attempts()) ==
        folder.path() +
            ": no libthing.so in it\n"
            "the loader's search path: none of libthing.so.2, libthing.so\n"
            "/nowhere/lib: no such folder");
}

TEST_CASE("a broken library is reported in the loader's words", "[library]") {
  const TemporaryDirectory folder;
  write_file(folder.file("libthing.so.3"),
             "not a library, but long enough for a header to be read "
             "and found wanting in its first four bytes");
  LibrarySearch search = nothing_usual();
  search.first_folders = {folder.path()};
  const DynamicLibrary library = DynamicLibrary::find(search);
  CHECK_FALSE(library);
  REQUIRE(library.attempts().size() == 2);
  CHECK(library.attempts()[0].where == folder.file("libthing.so.3"));
  CHECK(library.attempts()[0].reason.find("invalid ELF header") != std::string::npos);
  CHECK(library.attempts()[1].reason == "not searched, as the settings ask");
}

TEST_CASE("a library that stands for the one looked for is passed over", "[library]") {
  LibrarySearch search = nothing_usual();
  search.usual_places = true;
  search.loader_names = {"libc.so.6"};
  const std::string path = DynamicLibrary::find(search).path();
  search.standin_symbol = "malloc";
  const DynamicLibrary library = DynamicLibrary::find(search);
  CHECK_FALSE(library);
  CHECK(library.path().empty());
  CHECK(to_text(library.attempts()) ==
        path +
            ": ptxgen's own, which stands for it on an emulated GPU\n"
            "the loader's search path: none of libc.so.6");
  search.standin_symbol = "a function that libc does not have";
  CHECK(DynamicLibrary::find(search).path() == path);
}

TEST_CASE("an override that does not work is final", "[library]") {
  LibrarySearch search = nothing_usual();
  search.usual_places = true;
  search.loader_names = {"libc.so.6"};  // would be found
  search.override_path = "/nowhere/libthing.so";
  const DynamicLibrary library = DynamicLibrary::find(search);
  CHECK_FALSE(library);
  CHECK(to_text(library.attempts()) == "/nowhere/libthing.so (PTXGEN_THING_PATH): no such file");
}

TEST_CASE("an override is a file or a folder", "[library]") {
  LibrarySearch search = nothing_usual();
  search.override_path = FAKE_LIBCUDA_GPU;
  const DynamicLibrary by_file = DynamicLibrary::find(search);
  REQUIRE(by_file);
  CHECK(by_file.path() == FAKE_LIBCUDA_GPU);
  CHECK(by_file.attempts().empty());
  CHECK(by_file.symbol("cuInit") != nullptr);
  CHECK(by_file.symbol("cuNothing") == nullptr);

  const std::string file = FAKE_LIBCUDA_GPU;
  search.override_path = file.substr(0, file.rfind('/'));
  search.stem = file.substr(file.rfind('/') + 1);
  CHECK(DynamicLibrary::find(search).path() == file);
}

TEST_CASE("in a folder the highest version wins and foreign names do not count", "[library]") {
  const TemporaryDirectory folder;
  const std::string content = read_file(FAKE_LIBCUDA_GPU);
  for (const char* name : {"libthing.so", "libthing.so.9.1", "libthing.so.13.0", "libthing.so.x",
                           "libthing.so.14-debug"}) {
    write_file(folder.file(name), content);
  }
  write_file(folder.file("libthing.so.20"), "broken");
  LibrarySearch search = nothing_usual();
  search.first_folders = {folder.path()};
  const DynamicLibrary library = DynamicLibrary::find(search);
  REQUIRE(library);
  CHECK(library.path() == folder.file("libthing.so.13.0"));
  REQUIRE(library.attempts().size() == 1);
  CHECK(library.attempts()[0].where == folder.file("libthing.so.20"));
}

TEST_CASE("what the process has loaded is found by its name", "[library]") {
  LibrarySearch search = nothing_usual();
  search.usual_places = true;
  search.loader_names = {"libc.so.6"};
  const DynamicLibrary library = DynamicLibrary::find(search);
  REQUIRE(library);
  CHECK(library.path().find("libc.so.6") != std::string::npos);
  CHECK(library.symbol("strlen") != nullptr);
}

TEST_CASE("libraries move", "[library]") {
  LibrarySearch search = nothing_usual();
  search.override_path = FAKE_LIBCUDA_GPU;
  DynamicLibrary first = DynamicLibrary::find(search);
  DynamicLibrary second = std::move(first);
  CHECK(second.symbol("cuInit") != nullptr);
  DynamicLibrary third;
  third = std::move(second);
  CHECK(third);
  CHECK(third.symbol("cuInit") != nullptr);
}
