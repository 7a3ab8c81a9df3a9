// src/cli/output/frame_json.cpp - frames as JSON
#include "cli/output/frame_json.hpp"

#include <nlohmann/json.hpp>

namespace ptxgen::cli {

using nlohmann::json;

namespace {

json position(const emulator::Dim3& p) { return {p.x, p.y, p.z}; }

std::string_view group_state(emulator::LaneGroup::State state) {
  constexpr std::string_view kNames[] = {"running", "ready", "barrier", "lanes", "warpgroup"};
  return kNames[static_cast<std::size_t>(state)];
}

json warp_json(const emulator::WarpState& warp) {
  json groups = json::array();
  for (const emulator::LaneGroup& group : warp.groups) {
    groups.push_back({{"state", group_state(group.state)},
                      {"lanes", group.lanes},
                      {"line", group.line},
                      {"call_depth", group.call_depth}});
    if (group.state == emulator::LaneGroup::State::Barrier) {
      groups.back()["barrier"] = group.barrier;
    }
  }
  return {{"lanes", warp.lanes}, {"exited", warp.exited}, {"groups", std::move(groups)}};
}

json watched_json(const frames::WatchedValues& values) {
  json all = json::array();
  for (std::size_t i = 0; i < values.bits.size(); ++i) {
    if (!values.known[i]) {
      all.push_back(nullptr);
      continue;
    }
    const std::string text = frames::value_text(values.bits[i], values.type);
    json number = json::parse(text, nullptr, false);
    all.push_back(number.is_number() ? std::move(number) : json(text));
  }
  return {{"name", values.name},
          {"type", ptx::name(values.type)},
          {"first", values.first},
          {"values", std::move(all)}};
}

}  // namespace

json to_json(const frames::Frame& frame) {
  json warps = json::array();
  for (const emulator::WarpState& warp : frame.warps) warps.push_back(warp_json(warp));
  json watched = json::array();
  for (const frames::WatchedValues& values : frame.watched) watched.push_back(watched_json(values));
  json document = {{"number", frame.number},
                   {"finished", frame.finished},
                   {"kernel", frame.kernel},
                   {"watched", std::move(watched)},
                   {"findings", frame.findings}};
  if (!frame.finished) {
    document.update({{"grid", position(frame.grid)},
                     {"block", position(frame.block)},
                     {"warp", frame.warp},
                     {"line", frame.line},
                     {"instruction", frame.instruction},
                     {"active", frame.active},
                     {"executing", frame.executing},
                     {"warps", std::move(warps)}});
  }
  return document;
}

json to_json(std::span<const frames::Frame> frames) {
  json all = json::array();
  for (const frames::Frame& frame : frames) all.push_back(to_json(frame));
  return all;
}

}  // namespace ptxgen::cli
