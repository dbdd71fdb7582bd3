// The registry, and the spellings of later generations.
#include "exec/registry.h"

#include <unordered_map>

namespace mgx {
namespace {

std::unordered_map<std::string, Semantics>& table() {
  static std::unordered_map<std::string, Semantics> t;
  return t;
}

std::unordered_map<std::string, Semantics>& prefixes() {
  static std::unordered_map<std::string, Semantics> t;
  return t;
}

void define_all() {
  static const bool once = [] {
    define_scalar();
    define_scalar_memory();
    define_vector_integers();
    define_vector_floats();
    define_vector_halves();
    define_vector_doubles();
    define_packed();
    define_conversions();
    define_scaled_conversions();
    define_compares();
    define_lanes();
    define_relative();
    define_sums();
    define_lds();
    define_atomics();
    define_buffer();
    define_flat();
    define_matrix();
    define_wmma();
    return true;
  }();
  (void)once;
}

// Later generations' names of what GFX9 has.
const std::unordered_map<std::string, const char*>& renamed() {
  static const std::unordered_map<std::string, const char*> names = {
      {"v_add_nc_u32", "v_add_u32"},
      {"v_sub_nc_u32", "v_sub_u32"},
      {"v_subrev_nc_u32", "v_subrev_u32"},
      {"v_add_nc_i32", "v_add_i32"},
      {"v_sub_nc_i32", "v_sub_i32"},
      {"v_add_nc_u16", "v_add_u16"},
      {"v_sub_nc_u16", "v_sub_u16"},
      {"v_add_nc_i16", "v_add_i16"},
      {"v_sub_nc_i16", "v_sub_i16"},
      {"v_add_co_ci_u32", "v_addc_co_u32"},
      {"v_sub_co_ci_u32", "v_subb_co_u32"},
      {"v_subrev_co_ci_u32", "v_subbrev_co_u32"},
      {"v_mad_co_u64_u32", "v_mad_u64_u32"},
      {"v_mad_co_i64_i32", "v_mad_i64_i32"},
      {"v_ctz_i32_b32", "v_ffbl_b32"},
      {"v_clz_i32_u32", "v_ffbh_u32"},
      {"v_cls_i32", "v_ffbh_i32"},
      {"v_cvt_pk_rtz_f16_f32", "v_cvt_pkrtz_f16_f32"},
      {"v_cvt_floor_i32_f32", "v_cvt_flr_i32_f32"},
      {"v_cvt_nearest_i32_f32", "v_cvt_rpi_i32_f32"},
      {"v_cvt_pk_norm_i16_f32", "v_cvt_pknorm_i16_f32"},
      {"v_cvt_pk_norm_u16_f32", "v_cvt_pknorm_u16_f32"},
      {"v_mul_dx9_zero_f32", "v_mul_legacy_f32"},
      {"v_max_num_f32", "v_max_f32"},
      {"v_min_num_f32", "v_min_f32"},
      {"v_max_num_f16", "v_max_f16"},
      {"v_min_num_f16", "v_min_f16"},
      {"v_max_num_f64", "v_max_f64"},
      {"v_min_num_f64", "v_min_f64"},
      {"v_max3_num_f32", "v_max3_f32"},
      {"v_min3_num_f32", "v_min3_f32"},
      {"v_max3_num_f16", "v_max3_f16"},
      {"v_min3_num_f16", "v_min3_f16"},
      {"v_med3_num_f32", "v_med3_f32"},
      {"v_med3_num_f16", "v_med3_f16"},
      {"v_maxmin_num_f32", "v_maxmin_f32"},
      {"v_minmax_num_f32", "v_minmax_f32"},
      {"v_maxmin_num_f16", "v_maxmin_f16"},
      {"v_minmax_num_f16", "v_minmax_f16"},
      {"v_pk_max_num_f16", "v_pk_max_f16"},
      {"v_pk_min_num_f16", "v_pk_min_f16"},
      {"s_and_not1_b32", "s_andn2_b32"},
      {"s_and_not1_b64", "s_andn2_b64"},
      {"s_or_not1_b32", "s_orn2_b32"},
      {"s_or_not1_b64", "s_orn2_b64"},
      {"s_and_not1_saveexec_b32", "s_andn2_saveexec_b32"},
      {"s_and_not1_saveexec_b64", "s_andn2_saveexec_b64"},
      {"s_or_not1_saveexec_b32", "s_orn2_saveexec_b32"},
      {"s_or_not1_saveexec_b64", "s_orn2_saveexec_b64"},
      {"s_and_not0_saveexec_b32", "s_andn1_saveexec_b32"},
      {"s_and_not0_saveexec_b64", "s_andn1_saveexec_b64"},
      {"s_and_not1_wrexec_b32", "s_andn2_wrexec_b32"},
      {"s_and_not1_wrexec_b64", "s_andn2_wrexec_b64"},
      {"s_and_not0_wrexec_b32", "s_andn1_wrexec_b32"},
      {"s_and_not0_wrexec_b64", "s_andn1_wrexec_b64"},
      {"s_or_not0_saveexec_b32", "s_orn1_saveexec_b32"},
      {"s_or_not0_saveexec_b64", "s_orn1_saveexec_b64"},
      {"s_cls_i32_i64", "s_flbit_i32_i64"},
      {"v_cvt_pk_norm_i16_f16", "v_cvt_pknorm_i16_f16"},
      {"v_cvt_pk_norm_u16_f16", "v_cvt_pknorm_u16_f16"},
      {"v_exp_legacy_f32", "v_exp_f32"},
      {"v_log_legacy_f32", "v_log_f32"},
      {"s_ctz_i32_b32", "s_ff1_i32_b32"},
      {"s_ctz_i32_b64", "s_ff1_i32_b64"},
      {"s_clz_i32_u32", "s_flbit_i32_b32"},
      {"s_clz_i32_u64", "s_flbit_i32_b64"},
      {"s_cls_i32", "s_flbit_i32"},
      {"s_add_co_u32", "s_add_u32"},
      {"s_sub_co_u32", "s_sub_u32"},
      {"s_add_co_i32", "s_add_i32"},
      {"s_sub_co_i32", "s_sub_i32"},
      {"s_add_co_ci_u32", "s_addc_u32"},
      {"s_sub_co_ci_u32", "s_subb_u32"},
      {"s_addk_co_i32", "s_addk_i32"},
      {"s_add_nc_u64", "s_add_u64"},
      {"s_sub_nc_u64", "s_sub_u64"},
      {"s_max_num_f32", "s_max_f32"},
      {"s_min_num_f32", "s_min_f32"},
  };
  return names;
}

struct Suffix {
  const char *later, *earlier;
};

// `ds_load_b32` is `ds_read_b32`, `global_load_b64` is `global_load_dwordx2`, and so on.
std::string earlier_memory_name(const std::string& name) {
  static const Suffix lds[] = {
      {"ds_load_2addr_stride64_", "ds_read2st64_"}, {"ds_load_2addr_", "ds_read2_"},
      {"ds_store_2addr_stride64_", "ds_write2st64_"}, {"ds_store_2addr_", "ds_write2_"},
      {"ds_load_", "ds_read_"}, {"ds_store_", "ds_write_"},
  };
  for (const Suffix& s : lds) {
    const std::string later = s.later;
    if (name.compare(0, later.size(), later) == 0) return s.earlier + name.substr(later.size());
  }
  static const Suffix widths[] = {
      {"load_b32", "load_dword"}, {"load_b64", "load_dwordx2"}, {"load_b96", "load_dwordx3"},
      {"load_b128", "load_dwordx4"}, {"load_b256", "load_dwordx8"}, {"load_b512", "load_dwordx16"},
      {"load_u8", "load_ubyte"}, {"load_i8", "load_sbyte"}, {"load_u16", "load_ushort"},
      {"load_i16", "load_sshort"}, {"load_d16_u8", "load_ubyte_d16"}, {"load_d16_hi_u8", "load_ubyte_d16_hi"},
      {"load_d16_i8", "load_sbyte_d16"}, {"load_d16_hi_i8", "load_sbyte_d16_hi"},
      {"load_d16_b16", "load_short_d16"}, {"load_d16_hi_b16", "load_short_d16_hi"},
      {"store_b8", "store_byte"}, {"store_b16", "store_short"}, {"store_b32", "store_dword"},
      {"store_b64", "store_dwordx2"}, {"store_b96", "store_dwordx3"}, {"store_b128", "store_dwordx4"},
      {"store_d16_hi_b8", "store_byte_d16_hi"}, {"store_d16_hi_b16", "store_short_d16_hi"},
  };
  for (const Suffix& s : widths) {
    const std::string later = s.later;
    const std::size_t begin = name.size() - later.size();
    if (name.size() > later.size() && name.compare(begin, later.size(), later) == 0 && name[begin - 1] == '_') {
      return name.substr(0, begin) + s.earlier;
    }
  }
  return {};
}

}  // namespace

void define(const std::string& mnemonic, Handler run, Prepare prepare, u16 forms, const char* operands) {
  table()[mnemonic] = {run, prepare, forms, operands};
}

void define_prefix(const std::string& start, Handler run, Prepare prepare, u16 forms) {
  prefixes()[start] = {run, prepare, forms, ""};
}

Semantics find_clamped(const std::string& mnemonic) {
  define_all();
  auto other = renamed().find(mnemonic);
  auto it = table().find((other != renamed().end() ? other->second : mnemonic) + std::string(" clamp"));
  return it != table().end() ? it->second : Semantics{};
}

Semantics find_semantics(const std::string& mnemonic) {
  define_all();
  const auto& t = table();
  auto it = t.find(mnemonic);
  if (it != t.end()) return it->second;
  for (const auto& [start, semantics] : prefixes()) {
    if (mnemonic.compare(0, start.size(), start) == 0) return semantics;
  }
  auto other = renamed().find(mnemonic);
  if (other != renamed().end()) return find_semantics(other->second);
  if (mnemonic.compare(0, 7, "v_dual_") == 0) return find_semantics("v_" + mnemonic.substr(7));
  const std::string earlier = earlier_memory_name(mnemonic);
  if (!earlier.empty() && earlier != mnemonic) {
    it = t.find(earlier);
    if (it != t.end()) return it->second;
  }
  return {};
}

}  // namespace mgx
