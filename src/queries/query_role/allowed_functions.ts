/**
 * The functions of `pg_catalog` that are not immutable and that compiled queries call. Immutable ones see nothing but
 * their arguments; all others are closed to the role of queries.
 */
export const allowedFunctions: readonly string[] = [
  // Times. Their results depend on the session's time zone.
  ...['age', 'date', 'date_add', 'date_part', 'date_subtract', 'date_trunc', 'extract', 'generate_series'],
  ...['make_timestamptz', 'overlaps', 'time', 'timestamp', 'timestamptz', 'timetz', 'timezone', 'to_char'],
  ...['to_date', 'to_number', 'to_timestamp', 'in_range'],
  ...['now', 'transaction_timestamp', 'statement_timestamp', 'clock_timestamp'],
  // Texts, arrays and documents. The output functions of types decide what they return.
  ...['array_to_json', 'array_to_string', 'concat', 'concat_ws', 'convert', 'convert_from', 'convert_to'],
  ...['format', 'length', 'quote_literal', 'quote_nullable', 'json_build_array', 'json_build_object'],
  ...['jsonb_build_array', 'jsonb_build_object', 'json_to_recordset', 'jsonb_to_recordset', 'row_to_json'],
  ...['jsonb_path_exists_tz', 'jsonb_path_match_tz', 'jsonb_path_query_array_tz', 'to_json', 'to_jsonb'],
  ...['jsonb_path_query_first_tz', 'jsonb_path_query_tz', 'pg_input_is_valid', 'pg_typeof'],
  ...['random', 'gen_random_uuid'],
  // What exportd asks for at the start of each transaction.
  ...['pg_backend_pid', 'pg_is_in_recovery'],
];
