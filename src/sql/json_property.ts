/** SQL expressions that read one property of a JSON column. None of them fails, whatever the property holds. */
export interface JsonProperty {
  /** Its text: that of a string without quotes, of anything else its JSON; null where it is missing or null. */
  readonly text: string;
  /** Whether it is a number, null where it is missing. */
  readonly isNumber: string;
  /** Its value where its text is a number, else null. */
  readonly numeric: string;
  /** The moment where its text is a date or a time in ISO 8601 (in UTC unless it says otherwise), else null. */
  readonly timestamp: string;
}

/**
 * A property of a JSON document.
 * @param document the column, of the type `type`; what is not JSON by its type is cast.
 * @param key an expression that gives the key.
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

/** Escapes that a `json` column may hold and PostgreSQL refuses to read: U+0000, and halves of surrogate pairs. */
const unreadable = String.raw`\\u(0000|[dD][89a-fA-F])`;
const highHalf = String.raw`\\u[dD][89abAB][0-9a-fA-F]{2}`;
const lowHalf = String.raw`\\u[dD][c-fC-F][0-9a-fA-F]{2}`;
const unreadableEscape = String.raw`\\u0000|${highHalf}(?!${lowHalf})|(?<!${highHalf})${lowHalf}`;

/**
 * A `json` value with those escapes replaced by U+FFFD, which no condition can tell from them. Backslashes are written
 * as escapes of their own first, so that every one that is left begins an escape.
 */
export const readableJson = (document: string): string => `(case when ${document}::text ~ '${unreadable}'
  then regexp_replace(replace(${document}::text, '\\\\', '\\u005c'), '${unreadableEscape}', '\\\\ufffd', 'g')::json
  else ${document} end)`;

const number = String.raw`^[-+]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]{1,4})?$`;

/** Whether a text counts as a number: what PostgreSQL reads as one without an overflow. */
export const isNumeric = (text: string): boolean => text.length <= 1_000 && new RegExp(number).test(text);

const numericOf = (text: string): string =>
  `(case when length(${text}) <= 1000 and ${text} ~ '${number}' then ${text}::numeric end)`;

const day = '[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])';
const zone = '(Z|[-+](0[0-9]|1[0-4])(:?[0-5][0-9])?)';
const time = String.raw`([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9](\.[0-9]{1,9})?)?`;
const moment = `^(?!0000)${day}([T ]${time}${zone}?)?$`;

/** The cases are nested, since only a case keeps PostgreSQL from computing what an earlier condition rules out. */
const timestampOf = (text: string): string => `(case when ${text} ~ '${moment}' then
  case when substr(${text}, 9, 2)::int <= extract(day from (substr(${text}, 1, 7) || '-01')::date + interval '1 month - 1 day')
    then ${text}::timestamptz end end)`;
