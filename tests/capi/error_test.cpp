// tests/capi/error_test.cpp - every exception becomes a status and a kept failure
#include <catch2/catch.hpp>
#include <new>
#include <stdexcept>
#include <thread>

#include "capi/handle.hpp"

using namespace ptxgen;
using namespace ptxgen::capi;

namespace {

struct Thing : Handle {
  static constexpr Kind kKind = Kind::Plan;
  Thing() : Handle(kKind) {}
};

std::string text_of(const void* handle) {
  std::string text(ptxgen_last_error_text(handle, nullptr, 0), '\0');
  ptxgen_last_error_text(handle, text.data(), text.size() + 1);
  return text;
}

struct Sample {
  std::size_t struct_bytes;
  int first;
  int second;
};

}  // namespace

TEST_CASE("each stage has a status, and other exceptions have theirs", "[capi]") {
  const Thing thing;
  for (int stage = 0; stage <= static_cast<int>(Stage::Io); ++stage) {
    const ptxgen_status status =
        guarded(&thing, [&] { throw Error(static_cast<Stage>(stage), "a-code", "a message"); });
    CHECK(status == stage + 1);
    CHECK(to_string(static_cast<Stage>(stage)) == ptxgen_status_name(status));
    ptxgen_error* const error = ptxgen_last_error(&thing);
    CHECK(ptxgen_error_status(error) == status);
    CHECK(std::string(ptxgen_error_code(error)) == "a-code");
    ptxgen_error_free(error);
  }
  CHECK(guarded(&thing, [] { throw UsageError{"null", "x is NULL"}; }) == PTXGEN_ERROR_USAGE);
  CHECK(text_of(&thing) == "error: x is NULL [null]");
  CHECK(guarded(&thing, [] { throw std::bad_alloc(); }) == PTXGEN_ERROR_MEMORY);
  CHECK(text_of(&thing) == "error: the host is out of memory [out-of-host-memory]");
  CHECK(guarded(&thing, [] { throw std::logic_error("impossible"); }) == PTXGEN_ERROR_INTERNAL);
  CHECK(text_of(&thing) == "error: impossible [internal]");
  CHECK(guarded(&thing, [] { throw 7; }) == PTXGEN_ERROR_INTERNAL);
  CHECK(text_of(&thing) == "error: an unknown exception [internal]");
  CHECK(guarded(&thing, [] {}) == PTXGEN_OK);
  CHECK(text_of(&thing) == "error: an unknown exception [internal]");
}

TEST_CASE("all fields of an error come through", "[capi]") {
  const Thing thing;
  Error error(Stage::Load, "rejected", "the driver does not accept the PTX");
  error.kernel = "k";
  error.target = "sm_90, PTX 8.0";
  error.file = "k.ptx";
  error.line = 12;
  error.column = 3;
  error.excerpt = "12: mov";
  error.driver_status = 218;
  error.log = "ptxas fatal";
  CHECK(guarded(&thing, [&] { throw error.refresh(); }) == PTXGEN_ERROR_LOAD);
  ptxgen_error* const kept = ptxgen_last_error(&thing);
  REQUIRE(kept != nullptr);
  // The copy stays what it was when the handle's error changes.
  CHECK(guarded(&thing, [] { throw UsageError{"null", "x"}; }) == PTXGEN_ERROR_USAGE);
  CHECK(ptxgen_error_message(kept) == error.message);
  CHECK(ptxgen_error_text(kept) == error.describe());
  CHECK(ptxgen_error_kernel(kept) == error.kernel);
  CHECK(ptxgen_error_target(kept) == error.target);
  CHECK(ptxgen_error_file(kept) == error.file);
  CHECK(ptxgen_error_line(kept) == 12);
  CHECK(ptxgen_error_column(kept) == 3);
  CHECK(ptxgen_error_excerpt(kept) == error.excerpt);
  CHECK(ptxgen_error_driver_status(kept) == 218);
  CHECK(ptxgen_error_log(kept) == error.log);
  ptxgen_error_free(kept);
}

TEST_CASE("what is asked of no error is empty", "[capi]") {
  CHECK(ptxgen_error_status(nullptr) == PTXGEN_OK);
  for (const auto field :
       {ptxgen_error_code, ptxgen_error_message, ptxgen_error_text, ptxgen_error_kernel,
        ptxgen_error_target, ptxgen_error_file, ptxgen_error_excerpt, ptxgen_error_log}) {
    CHECK(std::string(field(nullptr)).empty());
  }
  CHECK(ptxgen_error_line(nullptr) == 0);
  CHECK(ptxgen_error_column(nullptr) == 0);
  CHECK(ptxgen_error_driver_status(nullptr) == 0);
  ptxgen_error_free(nullptr);
  const Thing thing;
  CHECK(ptxgen_last_error(&thing) == nullptr);
  CHECK(ptxgen_last_error_text(&thing, nullptr, 0) == 0);
}

TEST_CASE("texts are cut to the buffer, never beyond it", "[capi]") {
  const Thing thing;
  CHECK(guarded(&thing, [] { throw UsageError{"c", "0123456789"}; }) == PTXGEN_ERROR_USAGE);
  const std::string full = "error: 0123456789 [c]";
  for (std::size_t bytes = 0; bytes < full.size() + 3; ++bytes) {
    std::string buffer(bytes + 2, '#');
    CHECK(ptxgen_last_error_text(&thing, buffer.data(), bytes) == full.size());
    const std::size_t fits = bytes == 0 ? 0 : std::min(bytes - 1, full.size());
    CHECK(buffer.substr(0, fits) == full.substr(0, fits));
    if (bytes != 0) CHECK(buffer[fits] == '\0');
    CHECK(buffer.substr(bytes) == "##");
  }
}

TEST_CASE("without a handle an error belongs to its thread", "[capi]") {
  CHECK(guarded(nullptr, [] { throw UsageError{"here", "here"}; }) == PTXGEN_ERROR_USAGE);
  std::thread([] {
    CHECK(ptxgen_last_error(nullptr) == nullptr);
    CHECK(guarded(nullptr, [] { throw UsageError{"there", "there"}; }) == PTXGEN_ERROR_USAGE);
  }).join();
  CHECK(text_of(nullptr) == "error: here [here]");
}

TEST_CASE("something that is no handle is told apart", "[capi]") {
  const std::uint64_t zeros[8] = {};
  CHECK(slot(zeros) == nullptr);
  CHECK(ptxgen_last_error(zeros) == nullptr);
  Thing thing;
  CHECK(slot(&thing) == &thing);
  const auto message = [](const void* of) { return text_of(of); };
  CHECK(guarded(&thing, [&] { (void)need(static_cast<Thing*>(nullptr), "plan"); }) ==
        PTXGEN_ERROR_USAGE);
  CHECK(message(&thing) == "error: plan is NULL; expected a plan [null]");
  CHECK(guarded(&thing, [&] { throw_wrong_handle(&thing, Kind::Stream, "stream"); }) ==
        PTXGEN_ERROR_USAGE);
  CHECK(message(&thing) ==
        "error: stream is the handle of a plan; expected a stream [wrong-handle]");
  const auto* const none = reinterpret_cast<const Handle*>(zeros);
  CHECK(guarded(&thing, [&] { throw_wrong_handle(none, Kind::Stream, "stream"); }) ==
        PTXGEN_ERROR_USAGE);
  CHECK(message(&thing) ==
        "error: stream is no handle, or was freed; expected a stream [wrong-handle]");
}

TEST_CASE("structures of other versions are read and written as far as they go", "[capi]") {
  struct Newer {
    Sample sample;
    int third;
    int padding;
  };
  Newer newer{{sizeof(Newer), 1, 2}, 0, 0};
  CHECK(read_struct(&newer.sample, "options").second == 2);
  newer.third = 3;
  const Thing thing;
  CHECK(guarded(&thing, [&] { (void)read_struct(&newer.sample, "options"); }) ==
        PTXGEN_ERROR_USAGE);
  CHECK(text_of(&thing).find("options has 24 bytes, this library (0.1.0) knows 16, and a later "
                             "field is set; use a newer library") != std::string::npos);
  // In memory that goes on, as the compiler cannot know that none of it is touched.
  Newer old{{offsetof(Sample, second), 1, 77}, 0, 0};
  Sample& older = old.sample;
  CHECK(read_struct(&older, "options").first == 1);
  CHECK(read_struct(&older, "options").second == 0);
  write_struct(&older, Sample{0, 5, 6}, "info");
  CHECK(older.first == 5);
  CHECK(older.second == 77);
  CHECK(older.struct_bytes == offsetof(Sample, second));
  write_struct(&newer.sample, Sample{0, 5, 6}, "info");
  CHECK(newer.sample.second == 6);
  CHECK(newer.third == 0);
  CHECK(newer.sample.struct_bytes == sizeof(Newer));
  Newer empty{};
  Sample& unset = empty.sample;
  CHECK(guarded(&thing, [&] { (void)read_struct(&unset, "options"); }) == PTXGEN_ERROR_USAGE);
  CHECK(text_of(&thing) ==
        "error: options.struct_bytes is 0; set it to sizeof the structure before the call "
        "[struct-bytes]");
  CHECK(guarded(&thing, [&] { write_struct(&unset, Sample{}, "info"); }) == PTXGEN_ERROR_USAGE);
  CHECK(guarded(&thing, [&] { write_struct<Sample>(nullptr, Sample{}, "info"); }) ==
        PTXGEN_ERROR_USAGE);
  CHECK(text_of(&thing) == "error: info is NULL [null]");
}
