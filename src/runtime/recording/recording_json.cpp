// src/runtime/recording/recording_json.cpp - the file format of recordings
#include <nlohmann/json.hpp>

#include "ptxgen/runtime/recording/recording.hpp"
#include "runtime/recording/program_json.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0 {

namespace {

using nlohmann::json;

constexpr std::string_view kFormat = "ptxgen recording 1";

std::vector<std::byte> bytes_of(const json& value) {
  return bytes_of_hex(value.get_ref<const std::string&>());
}

ElementType type_named(const std::string& name) {
  for (std::size_t i = 0; i < std::size(kElementTypes); ++i) {
    if (kElementTypes[i].name == name) return static_cast<ElementType>(i);
  }
  throw Error(Stage::Io, "bad-recording", format_text("'{}' is no element type", name));
}

json content_json(const RecordedContent& content) {
  switch (content.kind) {
    case RecordedContent::Kind::Bytes:
      return {{"bytes", hex_of(content.bytes)}, {"unwritten", content.unwritten}};
    case RecordedContent::Kind::Fill:
      return {{"fill", content.fill}};
    case RecordedContent::Kind::Spec:
      return {{"spec", content.spec}, {"seed", content.seed}, {"each_frame", content.each_frame}};
    case RecordedContent::Kind::Elements:
      break;
  }
  return {{"elements", to_string(content.type)},
          {"low", content.low},
          {"high", content.high},
          {"seed", content.seed},
          {"each_frame", content.each_frame}};
}

RecordedContent content_in(const json& value) {
  RecordedContent content;
  if (value.contains("bytes")) {
    content.kind = RecordedContent::Kind::Bytes;
    content.bytes = bytes_of(value.at("bytes"));
    // Recordings had none at first.
    content.unwritten = value.value("unwritten", decltype(content.unwritten)());
    return content;
  }
  if (value.contains("fill")) {
    content.fill = value.at("fill").get<std::uint8_t>();
    return content;
  }
  content.seed = value.at("seed").get<std::uint64_t>();
  content.each_frame = value.at("each_frame").get<bool>();
  if (value.contains("spec")) {
    content.kind = RecordedContent::Kind::Spec;
    content.spec = value.at("spec").get<std::string>();
    return content;
  }
  content.kind = RecordedContent::Kind::Elements;
  content.type = type_named(value.at("elements").get<std::string>());
  content.low = value.at("low").get<double>();
  content.high = value.at("high").get<double>();
  return content;
}

json size_json(const Dim3& size) { return json::array({size.x, size.y, size.z}); }

Dim3 size_in(const json& value) {
  return {value.at(0).get<std::uint32_t>(), value.at(1).get<std::uint32_t>(),
          value.at(2).get<std::uint32_t>()};
}

json launch_json(const RecordedLaunch& launch) {
  json pointers = json::array();
  for (const RecordedPointer& pointer : launch.pointers) {
    pointers.push_back(
        {{"at", pointer.at}, {"buffer", pointer.buffer}, {"offset", pointer.offset}});
  }
  const LaunchGeometry& geometry = launch.geometry;
  return {{"module", launch.module},
          {"kernel", launch.kernel},
          {"grid", size_json(geometry.grid)},
          {"block", size_json(geometry.block)},
          {"cluster", size_json(geometry.cluster)},
          {"shared", geometry.dynamic_shared_bytes},
          {"cooperative", geometry.cooperative},
          {"arguments", hex_of(launch.block)},
          {"pointers", pointers}};
}

RecordedLaunch launch_in(const json& value) {
  RecordedLaunch launch;
  launch.module = value.at("module").get<std::size_t>();
  launch.kernel = value.at("kernel").get<std::string>();
  launch.geometry.grid = size_in(value.at("grid"));
  launch.geometry.block = size_in(value.at("block"));
  launch.geometry.cluster = size_in(value.at("cluster"));
  launch.geometry.dynamic_shared_bytes = value.at("shared").get<std::uint32_t>();
  launch.geometry.cooperative = value.at("cooperative").get<bool>();
  launch.block = bytes_of(value.at("arguments"));
  for (const json& pointer : value.at("pointers")) {
    launch.pointers.push_back({pointer.at("at").get<std::uint32_t>(),
                               pointer.at("buffer").get<std::size_t>(),
                               pointer.at("offset").get<std::uint64_t>()});
  }
  return launch;
}

Recording recording_in(const json& document) {
  if (!document.is_object() || document.value("format", "") != kFormat) {
    throw Error(Stage::Io, "bad-recording",
                format_text("it has no member \"format\" with the value \"{}\"", kFormat));
  }
  Recording recording;
  recording.made_by = document.at("made_by").get<std::string>();
  recording.gpu = document.at("gpu").get<std::string>();
  recording.seed = document.at("seed").get<std::uint64_t>();
  recording.frames = document.at("frames").get<std::uint64_t>();
  recording.modules = document.at("modules").get<std::vector<std::string>>();
  for (const json& value : document.at("buffers")) {
    RecordedBuffer buffer;
    buffer.name = value.at("name").get<std::string>();
    buffer.bytes = value.at("bytes").get<std::uint64_t>();
    buffer.output = value.at("output").get<bool>();
    buffer.content = content_in(value.at("content"));
    recording.buffers.push_back(std::move(buffer));
  }
  for (const json& value : document.at("launches")) recording.launches.push_back(launch_in(value));
  recording.frame_hashes = document.at("frame_hashes").get<std::vector<std::string>>();
  recording.hash = document.at("hash").get<std::string>();
  recording.outputs = bytes_of(document.at("outputs"));
  recording.failure = document.at("failure").get<std::string>();
  return recording;
}

}  // namespace

std::string to_json(const Recording& recording) {
  if (recording.is_program()) return program_text(recording);
  json buffers = json::array();
  for (const RecordedBuffer& buffer : recording.buffers) {
    buffers.push_back({{"name", buffer.name},
                       {"bytes", buffer.bytes},
                       {"output", buffer.output},
                       {"content", content_json(buffer.content)}});
  }
  json launches = json::array();
  for (const RecordedLaunch& launch : recording.launches) launches.push_back(launch_json(launch));
  const json document = {{"format", kFormat},
                         {"made_by", recording.made_by},
                         {"gpu", recording.gpu},
                         {"seed", recording.seed},
                         {"frames", recording.frames},
                         {"modules", recording.modules},
                         {"buffers", buffers},
                         {"launches", launches},
                         {"frame_hashes", recording.frame_hashes},
                         {"hash", recording.hash},
                         {"outputs", hex_of(recording.outputs)},
                         {"failure", recording.failure}};
  return document.dump(1, ' ', false, json::error_handler_t::replace) + "\n";
}

Recording parse_recording(std::string_view text, std::string_view file) {
  const auto refused = [&](const std::string& why) {
    Error error(Stage::Io, "bad-recording", "this is not a recording: " + why);
    error.file = std::string(file);
    return error.refresh();
  };
  try {
    if (is_program_text(text)) return parse_program(text);
    return recording_in(json::parse(text));
  } catch (const json::exception& error) {
    throw refused(error.what());
  } catch (const Error& error) {
    throw refused(error.message);
  }
}

}  // namespace ptxgen::inline v0
