import { sqlLiteral } from './seeded_random.ts';

// JSON is concatenated as text and parsed once. jsonb_build_object looks up the type of every argument for every row,
// which made the demo data take three times as long.

/** SQL for the text of a constant JSON value. */
export const json = (value: unknown): string => sqlLiteral(JSON.stringify(value));

/** SQL for the text of a JSON string. `text` must have no quotes, backslashes and control characters. */
export const jsonString = (text: string): string => `'"' || ${text} || '"'`;

/** SQL for the text of a JSON number. */
export const jsonNumber = (number: string): string => `(${number})::text`;

/** SQL for the fields of an object without its braces, from SQL for the text of each value. */
export const jsonFields = (fields: Readonly<Record<string, string>>): string =>
  Object.entries(fields)
    .map(
      ([name, value], position) =>
        `${sqlLiteral(`${position === 0 ? '' : ','}${JSON.stringify(name)}:`)} || ${value}`,
    )
    .join(' || ');

/** SQL for the text of an object, from SQL for the text of each value. */
export const jsonObject = (fields: Readonly<Record<string, string>>): string =>
  `'{' || ${jsonFields(fields)} || '}'`;
