// ptxgen/model.hpp - model files
#pragma once

#include "ptxgen/support/language.hpp"

#include "ptxgen/model/gguf.hpp"
