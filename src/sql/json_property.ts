/** Escapes that a `json` column may contain but PostgreSQL cannot decode: U+0000 and unpaired surrogates. */
const unreadable = String.raw`\\u(0000|[dD][89a-fA-F])`;
const highHalf = String.raw`\\u[dD][89abAB][0-9a-fA-F]{2}`;
const lowHalf = String.raw`\\u[dD][c-fC-F][0-9a-fA-F]{2}`;
const unreadableEscape = String.raw`\\u0000|${highHalf}(?!${lowHalf})|(?<!${highHalf})${lowHalf}`;

/**
 * Replaces these escapes in a `json` value by U+FFFD. Escaped backslashes are rewritten first, so that every remaining
 * backslash starts an escape.
 */
export const readableJson = (document: string): string => `(case when ${document}::text ~ '${unreadable}'
  then regexp_replace(replace(${document}::text, '\\\\', '\\u005c'), '${unreadableEscape}', '\\\\ufffd', 'g')::json
  else ${document} end)`;
