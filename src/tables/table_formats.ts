/** The formats of tables, as `table_format` of a config names them. */
export const tableFormats = ['delta'] as const;
