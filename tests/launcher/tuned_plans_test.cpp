// tests/launcher/tuned_plans_test.cpp - measured plans: files, merging, damage, use
#include "runtime/launch/tuned_plans.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <thread>

#include "launcher/rig.hpp"
#include "support/temporary_directory.hpp"

using namespace ptxgen;
using namespace ptxgen::test;

namespace {

using nlohmann::json;

GemvProblem problem_of(std::uint32_t k, GemvLayout layout = GemvLayout::T) {
  GemvProblem problem;
  problem.k = k;
  problem.n = 96;
  problem.layout = layout;
  return problem;
}

TunedRecord record_of(const TunedPlace& place, const GemvProblem& problem,
                      std::uint32_t unroll = 2) {
  TunedRecord record;
  record.place = place;
  record.problem = problem;
  GemvPlan plan;
  plan.problem = problem;
  plan.unroll = unroll;
  plan.warps_k = 2;
  record.plan = plan;
  record.metric = "chained";
  record.median_us = 14.25;
  record.low_us = 14.125;
  record.high_us = 14.5;
  record.samples = 200;
  record.planned_us = 15;
  record.candidates = {{"one", 14.25, ""}, {"two", 0, "out of registers"}};
  return record;
}

const TunedPlace kPlace = {"NVIDIA H200", 90, 13000, "0.1.0"};

std::vector<TunedRecord> read_all(const std::string& text) {
  std::string why;
  auto records = read_tuned(text, why);
  CHECK(why.empty());
  return records;
}

}  // namespace

TEST_CASE("a record comes back from its file as it was") {
  TunedRecord record = record_of(kPlace, problem_of(1000, GemvLayout::R), 5);
  record.problem.weights = ElementType::bf16;
  record.problem.y = ElementType::bf16;
  record.problem.lda = 1008;
  record.problem.bias = true;
  record.problem.a_alignment = 8;
  record.plan->problem = record.problem;
  record.plan->path = GemvPath::Async;
  record.plan->stages = 4;
  record.plan->chunk_steps = 3;
  record.plan->streaming = false;
  TunedRecord failed = record_of(kPlace, problem_of(7));
  failed.plan.reset();
  failed.failure = "no candidate gave a right result";
  const std::vector<TunedRecord> both = {record, failed};
  const auto back = read_all(merge_tuned({}, both));
  REQUIRE(back.size() == 2);
  CHECK(back[0].place == record.place);
  CHECK(back[0].problem == record.problem);
  REQUIRE(back[0].plan);
  CHECK(*back[0].plan == *record.plan);
  CHECK(back[0].median_us == 14.25);
  CHECK(back[0].low_us == 14.125);
  CHECK(back[0].high_us == 14.5);
  CHECK(back[0].samples == 200);
  CHECK(back[0].planned_us == 15);
  CHECK(!back[1].plan);
  CHECK(back[1].failure == "no candidate gave a right result");
}

TEST_CASE("merging replaces what was measured again and leaves everything else") {
  TunedPlace other = kPlace;
  other.driver = 12040;
  const std::vector<TunedRecord> old = {record_of(kPlace, problem_of(10)),
                                        record_of(other, problem_of(10)),
                                        record_of(kPlace, problem_of(20))};
  json document = json::parse(merge_tuned({}, old));
  document["note"] = "kept by hand";
  document["records"][1]["temperature"] = 41;
  document["records"].push_back("what a later version writes");
  const std::vector<TunedRecord> fresh = {record_of(kPlace, problem_of(10), 4),
                                          record_of(kPlace, problem_of(30))};
  const json merged = json::parse(merge_tuned(document.dump(), fresh));
  CHECK(merged["note"] == "kept by hand");
  REQUIRE(merged["records"].size() == 5);
  CHECK(merged["records"][0]["plan"]["unroll"] == 4);
  CHECK(merged["records"][1] == document["records"][1]);
  CHECK(merged["records"][2] == document["records"][2]);
  CHECK(merged["records"][3] == "what a later version writes");
  CHECK(merged["records"][4]["problem"]["k"] == 30);
}

TEST_CASE("what is damaged is named, and the rest is used") {
  std::string why;
  CHECK(read_tuned("{]", why).empty());
  CHECK(why == "this is not a file of measured plans");
  CHECK(read_tuned(R"({"format": "another"})", why).empty());

  const std::vector<TunedRecord> three = {record_of(kPlace, problem_of(10)),
                                          record_of(kPlace, problem_of(20)),
                                          record_of(kPlace, problem_of(30))};
  json document = json::parse(merge_tuned({}, three));
  const auto with = [&](const char* where, const char* member, const json& value) {
    json damaged = document;
    damaged["records"][1][where][member] = value;
    why.clear();
    CHECK(read_tuned(damaged.dump(), why).size() == 2);
    return why;
  };
  CHECK(with("plan", "unroll", -1) ==
        "1 of 3 records cannot be read, the first: unroll is not a 32-bit number: -1");
  CHECK(with("plan", "path", "teleport") ==
        "1 of 3 records cannot be read, the first: path is 'teleport'");
  CHECK(with("problem", "k", std::uint64_t{1} << 32).find("k is not a 32-bit number") !=
        std::string::npos);
  CHECK(!with("problem", "a_alignment", 3).empty());
  CHECK(!with("place", "driver", "new").empty());
  // Nothing of ours is written over something else.
  const Error refused = error_of([&] { static_cast<void>(merge_tuned("hello", three)); });
  CHECK(refused.code == "damaged");
}

TEST_CASE("files appear whole, several writers lose nothing") {
  const TemporaryDirectory folder;
  const std::string where = folder.file("a/b");
  FileSystem files;
  const TunedRecord first = record_of(kPlace, problem_of(1));
  CHECK(keep_tuned(where, std::span(&first, 1), files) == where + "/NVIDIA-H200.json");
  std::vector<std::thread> writers;
  for (std::uint32_t i = 0; i < 4; ++i) {
    writers.emplace_back([&, i] {
      for (std::uint32_t j = 0; j < 5; ++j) {
        FileSystem own;
        const TunedRecord record = record_of(kPlace, problem_of(10 * i + j + 10));
        keep_tuned(where, std::span(&record, 1), own);
      }
    });
  }
  for (std::thread& writer : writers) writer.join();
  CHECK(read_all(read_file(where + "/NVIDIA-H200.json")).size() == 21);
  std::vector<FileInfo> left;
  REQUIRE(files.list(where, left) == 0);
  const auto regular = [](const FileInfo& file) { return file.regular; };
  CHECK(std::count_if(left.begin(), left.end(), regular) == 1);
  CHECK(tuned_file_name("NVIDIA GeForce RTX 4090 (emulated)") ==
        "NVIDIA-GeForce-RTX-4090-emulated.json");
}

TEST_CASE("a writer waits for another, and takes over from one that is gone") {
  const TemporaryDirectory folder;
  FileSystem files;
  const TunedRecord record = record_of(kPlace, problem_of(1));
  const std::string path = folder.file("NVIDIA-H200.json");
  write_file(path + ".lock", "");
  const Error error = error_of([&] { keep_tuned(folder.path(), std::span(&record, 1), files, 2); });
  CHECK(error.code == "locked");
  CHECK(error.message == "cannot write '" + path +
                             "': another process has locked it; if none is running, remove '" +
                             path + ".lock'");
  struct Later : FileSystem {
    std::int64_t now_s() override { return FileSystem::now_s() + 61; }
  } later;
  keep_tuned(folder.path(), std::span(&record, 1), later, 2);
  CHECK(read_all(read_file(path)).size() == 1);

  struct Full : FileSystem {
    int write(Handle, std::span<const std::byte>, std::size_t&) override { return ENOSPC; }
  } full;
  const std::string before = read_file(path);
  CHECK(error_of([&] { keep_tuned(folder.path(), std::span(&record, 1), full); }).code == "write");
  CHECK(read_file(path) == before);
  write_file(path, "mine");
  CHECK(error_of([&] { keep_tuned(folder.path(), std::span(&record, 1), files); }).code ==
        "damaged");
  CHECK(read_file(path) == "mine");
}

TEST_CASE("plans of this device, driver and version are found, others are not") {
  const TemporaryDirectory folder;
  const LogOfTest log;
  const Rig rig;
  const TunedPlace here = tuned_place(rig.device.info());
  const auto elsewhere = [&](auto change) {
    TunedPlace place = here;
    change(place);
    return place;
  };
  const std::vector<TunedRecord> records = {
      record_of(here, problem_of(10)),
      record_of(elsewhere([](TunedPlace& p) { p.driver += 10; }), problem_of(20)),
      record_of(elsewhere([](TunedPlace& p) { p.version = "0.0.9"; }), problem_of(30)),
      record_of(elsewhere([](TunedPlace& p) { p.sm = 75; }), problem_of(40))};
  FileSystem files;
  const std::string path = keep_tuned(folder.path(), records, files);
  const TunedPlans plans(rig.device, folder.path());
  CHECK(plans.size() == 1);
  const auto kept = plans.find(problem_of(10));
  REQUIRE(kept);
  CHECK(kept->plan == *records[0].plan);
  CHECK(kept->why == "tuned on " + here.device + ", 14.25 us");
  CHECK(!plans.find(problem_of(10, GemvLayout::R)));
  for (const std::uint32_t k : {20u, 30u, 40u}) CHECK(!plans.find(problem_of(k)));
  CHECK(log.text().empty());

  json document = json::parse(read_file(path));
  document["records"].push_back(17);
  write_file(path, document.dump());
  CHECK(TunedPlans(rig.device, folder.path()).size() == 1);
  CHECK(log.text().starts_with("measured plans in '" + path +
                               "' are not all used: 1 of 5 records cannot be read, the first: "));
  CHECK(TunedPlans(rig.device, folder.file("nothing")).size() == 0);
  CHECK(TunedPlans(rig.device, "").size() == 0);
}

TEST_CASE("the launcher takes a measured plan before the planner's") {
  const TemporaryDirectory folder;
  TunedRecord record = record_of(tuned_place(Rig().device.info()), problem_of(64));
  record.plan->load_bytes = 4;
  record.plan->blocks = static_cast<std::uint32_t>(record.plan->strips());
  FileSystem files;
  keep_tuned(folder.path(), std::span(&record, 1), files);

  LauncherOptions options = plain_options();
  options.settings.tuned = folder.path();
  const Rig rig(options);
  const auto plan = rig.launcher.gemv_plan(record.problem);
  REQUIRE(plan);
  CHECK(*plan == *record.plan);
  CHECK(rig.launcher.gemv_plan(problem_of(65)) != std::nullopt);

  options.settings.tuned = "off";
  const Rig without(options);
  CHECK(*without.launcher.gemv_plan(record.problem) != *record.plan);
}

TEST_CASE("the folder of measured plans follows the settings") {
  Settings settings;
  CHECK(tuned_folder(settings).empty());
  settings.home = "/home/me";
  CHECK(tuned_folder(settings) == "/home/me/.cache/ptxgen/tuned");
  settings.cache_dir = "/cache/";
  CHECK(tuned_folder(settings) == "/cache/tuned");
  settings.tuned = "/plans";
  CHECK(tuned_folder(settings) == "/plans");
  settings.tuned = "off";
  CHECK(tuned_folder(settings).empty());
}
