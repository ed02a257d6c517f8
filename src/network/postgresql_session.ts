import pg from 'pg';

/**
 * Settings of PostgreSQL that change how a session reads, prints or compares values, with the value that each session of
 * exportd has. A role or a database may set others. Those that change the time of a statement alone are left to the operator,
 * and so are `lc_monetary`, which decides what a stored amount of `money` is, and `search_path`.
 */
export const answerSettings = {
  DateStyle: 'ISO, MDY',
  IntervalStyle: 'postgres',
  TimeZone: 'UTC',
  timezone_abbreviations: 'Default',
  extra_float_digits: '1',
  lc_numeric: 'C',
  lc_time: 'C',
  bytea_output: 'hex',
  xmlbinary: 'base64',
  xmloption: 'content',
  array_nulls: 'on',
  transform_null_equals: 'off',
  backslash_quote: 'safe_encoding',
  quote_all_identifiers: 'off',
  standard_conforming_strings: 'on',
  gin_fuzzy_search_limit: '0',
  default_transaction_isolation: 'read committed',
} as const;

type SessionSettings = Readonly<Record<string, string>>;

/** Settings as the startup parameter `options`, which goes before what a role or a database sets. */
export const startupOptions = (settings: SessionSettings): string =>
  Object.entries(settings)
    .map(([name, value]) => `-c ${name}=${value.replaceAll(/[\\ ]/g, '\\$&')}`)
    .join(' ');

/**
 * Statements that set parameters, of the current transaction if they are `local`. They call no function, so that every role
 * may send them.
 */
export const setStatements = (settings: SessionSettings, scope: 'session' | 'local' = 'session'): string =>
  Object.entries(settings)
    .map(([name, value]) => `set ${scope} ${quotedSetting(name)} = ${pg.escapeLiteral(value)}`)
    .join('; ');

const quotedSetting = (name: string): string => name.split('.').map(pg.escapeIdentifier).join('.');
