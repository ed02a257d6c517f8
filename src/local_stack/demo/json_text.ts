import { sqlText } from './random.ts';

// JSON is put together as text and parsed once: jsonb_build_object looks every argument's type up anew, which made
// the demo's events take three times as long.

/** SQL for the text of a JSON value that is always the same. */
export const json = (value: unknown): string => sqlText(JSON.stringify(value));

/** SQL for the text of a JSON string, from SQL for a text without quotes, backslashes and control characters. */
export const jsonString = (text: string): string => `'"' || ${text} || '"'`;

/** SQL for the text of a JSON number, from SQL for a number. */
export const jsonNumber = (number: string): string => `(${number})::text`;

/** SQL for the members of an object without its braces, from SQL for the text of each member's value. */
export const jsonMembers = (members: Readonly<Record<string, string>>): string =>
  Object.entries(members)
    .map(
      ([name, value], place) => `${sqlText(`${place === 0 ? '' : ','}${JSON.stringify(name)}:`)} || ${value}`,
    )
    .join(' || ');

/** SQL for the text of an object, from SQL for the text of each member's value. */
export const jsonObject = (members: Readonly<Record<string, string>>): string =>
  `'{' || ${jsonMembers(members)} || '}'`;
