/** The optional public fields of a config, with their defaults. */
export const defaultConfig = {
  role_arn: null,
  external_id: null,
  endpoint_url: null,
  use_virtual_style_addressing: false,
  file_format: 'JSONLines',
  compression: null,
  compression_level: null,
  bloom_filters: false,
  max_file_size_mb: null,
  on_bad_row: 'fail',
  on_missing_rows: 'keep',
  include_events: [],
  exclude_events: [],
  filters: [],
  encryption: null,
  kms_key_id: null,
};
