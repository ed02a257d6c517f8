/** SQL expressions that read one property of a JSON column. None of them fails, whatever its value. */
export interface JsonProperty {
  /** Its text: a string without quotes, any other value as JSON; null if it is missing or null. */
  readonly text: string;
  /** Whether it is a number; null if it is missing. */
  readonly isNumber: string;
  /** Its value if its text is a number, otherwise null. */
  readonly numeric: string;
  /** Its time if its text is an ISO 8601 date or time (UTC without an offset), otherwise null. */
  readonly timestamp: string;
}

/**
 * Returns the expressions that read a property of a JSON value.
 * @param document the column
 * @param type its PostgreSQL type; types other than json and jsonb are cast
 * @param key an expression for the key
 */
export function jsonProperty(document: string, type: string | undefined, key: string): JsonProperty {
  const readable =
    type === 'jsonb' ? document : readableJson(type === 'json' ? document : `${document}::json`);
  const text = `(${readable} ->> ${key})`;
  return {
    text,
    isNumber: `(${type === 'jsonb' ? 'jsonb_typeof' : 'json_typeof'}(${readable} -> ${key}) = 'number')`,
    numeric: numericOf(text),
    timestamp: timestampOf(text),
  };
}

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

const number = String.raw`^[-+]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]{1,4})?$`;

/** Whether PostgreSQL can cast a string to numeric without an overflow. */
export const isNumeric = (text: string): boolean => text.length <= 1_000 && new RegExp(number).test(text);

const numericOf = (text: string): string =>
  `(case when length(${text}) <= 1000 and ${text} ~ '${number}' then ${text}::numeric end)`;

const day = '[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])';
const zone = '(Z|[-+](0[0-9]|1[0-4])(:?[0-5][0-9])?)';
const time = String.raw`([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9](\.[0-9]{1,9})?)?`;
const moment = `^(?!0000)${day}([T ]${time}${zone}?)?$`;

/** Nested cases: only a case keeps PostgreSQL from evaluating what an earlier condition excludes. */
const timestampOf = (text: string): string => `(case when ${text} ~ '${moment}' then
  case when substr(${text}, 9, 2)::int <= extract(day from (substr(${text}, 1, 7) || '-01')::date + interval '1 month - 1 day')
    then ${text}::timestamptz end end)`;
