// src/support/settings.cpp - reading the environment
#include "ptxgen/support/settings.hpp"

#include <cstdlib>

namespace ptxgen::inline v0 {

Settings Settings::from_environment() {
  Settings settings;
  for (const SettingField& field : setting_fields()) {
    // The views are string literals, hence terminated.
    const char* value = std::getenv(field.variable.data());
    if (value != nullptr && *value != '\0') settings.*field.value = value;
  }
  return settings;
}

std::string Settings::cache_folder() const {
  if (!cache_dir.empty()) return cache_dir;
  if (!xdg_cache_home.empty()) return xdg_cache_home + "/ptxgen";
  if (!home.empty()) return home + "/.cache/ptxgen";
  return {};
}

}  // namespace ptxgen::inline v0
