// tests/runtime/settings_test.cpp - the environment as a struct
#include "ptxgen/support/settings.hpp"

#include <stdlib.h>

#include <catch2/catch.hpp>
#include <optional>
#include <set>

using namespace ptxgen;

namespace {

/// Sets or clears a variable and puts it back at the end.
class Variable {
 public:
  Variable(std::string_view name, const char* value) : name_(name) {
    if (const char* old = ::getenv(name_.c_str()); old != nullptr) old_ = old;
    if (value == nullptr) {
      ::unsetenv(name_.c_str());
    } else {
      ::setenv(name_.c_str(), value, 1);
    }
  }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;
  ~Variable() {
    if (old_) {
      ::setenv(name_.c_str(), old_->c_str(), 1);
    } else {
      ::unsetenv(name_.c_str());
    }
  }

 private:
  std::string name_;
  std::optional<std::string> old_;
};

}  // namespace

TEST_CASE("every setting comes from its variable and from no other", "[settings]") {
  for (const SettingField& field : setting_fields()) {
    INFO(field.variable);
    const std::string initial = Settings().*field.value;
    {
      const Variable set(field.variable, "some value");
      const Settings settings = Settings::from_environment();
      for (const SettingField& other : setting_fields()) {
        if (other.variable == field.variable) {
          CHECK(settings.*other.value == "some value");
        } else {
          CHECK(settings.*other.value != "some value");
        }
      }
    }
    {
      const Variable empty(field.variable, "");
      CHECK(Settings::from_environment().*field.value == initial);
    }
    {
      const Variable unset(field.variable, nullptr);
      CHECK(Settings::from_environment().*field.value == initial);
    }
  }
}

TEST_CASE("the table of settings is complete and documented", "[settings]") {
  std::set<std::string_view> variables;
  std::set<std::string_view> names;
  for (const SettingField& field : setting_fields()) {
    CHECK(variables.insert(field.variable).second);
    CHECK(names.insert(field.name).second);
    CHECK_FALSE(field.doc.empty());
  }
  for (const char* variable :
       {"PTXGEN_LIBCUDA_PATH", "PTXGEN_NVRTC_PATH", "PTXGEN_NVJITLINK_PATH", "PTXGEN_PTXAS_PATH",
        "PTXGEN_NVDISASM_PATH", "PTXGEN_CUBLAS_PATH", "PTXGEN_CUDA_PATH", "PTXGEN_CACHE_DIR",
        "PTXGEN_CACHE", "PTXGEN_CACHE_LOWER_DIR", "PTXGEN_DEVICE", "PTXGEN_LOG", "PTXGEN_TRACE",
        "PTXGEN_NVTX_PATH", "NVTX_INJECTION64_PATH"}) {
    CHECK(variables.count(variable) == 1);
  }
  // A string member that is not in the table would never be read or printed.
  CHECK(sizeof(Settings) == setting_fields().size() * sizeof(std::string) + alignof(Settings));
}

TEST_CASE("the cache folder follows the nearest setting", "[settings]") {
  Settings settings;
  CHECK(settings.cache_folder().empty());
  settings.home = "/home/me";
  CHECK(settings.cache_folder() == "/home/me/.cache/ptxgen");
  settings.xdg_cache_home = "/var/xdg";
  CHECK(settings.cache_folder() == "/var/xdg/ptxgen");
  settings.cache_dir = "/fast/kernels";
  CHECK(settings.cache_folder() == "/fast/kernels");
}
