import type { FormField } from './form_fields.ts';

/** What is entered: text, whether a box is checked, or the rows of objects. */
export type Input = string | boolean | readonly Readonly<Record<string, string>>[];

/** The text of an input that is one. */
export const textOf = (input: Input | undefined): string => (typeof input === 'string' ? input : '');

/** The inputs of a form by `attr`. */
export type Inputs = Readonly<Record<string, Input>>;

/** The inputs that show a body; without one, those of a new export. */
export const inputsOf = (fields: readonly FormField[], body: object | null): Inputs =>
  Object.fromEntries(
    fields.map((field) => {
      const stored = body === null ? undefined : valueAt(body, field.path);
      return [field.attr, toInput(field, stored ?? initialValue(field))];
    }),
  );

/** Where a choice is required, one is made. */
const initialValue = (field: FormField): unknown =>
  field.default ?? (field.control === 'select' && field.required ? field.choices[0] : undefined);

function valueAt(body: object, path: readonly string[]): unknown {
  let value: unknown = body;
  for (const key of path) value = (value as Readonly<Record<string, unknown>> | null | undefined)?.[key];
  return value;
}

function toInput({ control, itemFields }: FormField, value: unknown): Input {
  switch (control) {
    case 'checkbox':
      return value === true;
    case 'time':
      return typeof value === 'string' ? new Date(value).toISOString().slice(0, 16) : '';
    case 'lines':
      return Array.isArray(value) ? value.join('\n') : '';
    case 'objects':
      return Array.isArray(value) ? value.map((item) => objectToInput(itemFields, item as object)) : [];
    case 'json':
      return value === undefined || value === null ? '' : JSON.stringify(value);
    default:
      return typeof value === 'string'
        ? value
        : value === undefined || value === null
          ? ''
          : JSON.stringify(value);
  }
}

const objectToInput = (fields: readonly FormField[], item: object): Readonly<Record<string, string>> =>
  Object.fromEntries(
    fields.map((field) => {
      const value = valueAt(item, field.path);
      // A text is shown without quotes; other values are JSON.
      return [
        field.attr,
        typeof value === 'string' ? value : value === undefined ? '' : JSON.stringify(value),
      ];
    }),
  );

/** The value of an input; undefined when nothing was entered. */
function toValue(field: FormField, input: Input): unknown {
  if (typeof input === 'boolean') return input;
  if (typeof input !== 'string') {
    const items = input.map((item) => objectToValue(field.itemFields, item));
    return items.length === 0 ? undefined : items;
  }
  if (input.trim() === '') return undefined;
  switch (field.control) {
    case 'number':
      return Number(input);
    case 'time':
      return `${input.slice(0, 16)}:00.000Z`;
    case 'lines':
      return input
        .split('\n')
        .map((line) => line.trim())
        .filter((line) => line !== '');
    case 'json':
      return jsonOrText(input);
    default:
      return input;
  }
}

const objectToValue = (
  fields: readonly FormField[],
  item: Readonly<Record<string, string>>,
): Readonly<Record<string, unknown>> =>
  Object.fromEntries(
    fields.flatMap((field): [string, unknown][] => {
      const text = item[field.attr] ?? '';
      if (text === '') return [];
      return [[field.path.at(-1) ?? '', field.control === 'json' ? jsonOrText(text) : text]];
    }),
  );

/** `["a", "b"]` and `42` are JSON; `Firefox` is a text. */
function jsonOrText(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return text;
  }
}

/** The body that creates an export: what was entered, without what is the default. */
export const createBodyOf = (fields: readonly FormField[], inputs: Inputs): Record<string, unknown> =>
  nested(
    fields.flatMap((field): readonly Entry[] => {
      const value = toValue(field, inputs[field.attr] ?? '');
      const isDefault =
        !field.required &&
        isEqual(value, field.default ?? (field.control === 'checkbox' ? false : undefined));
      return value === undefined || isDefault ? [] : [[field.path, value]];
    }),
  );

/** The body that changes an export: what differs from before. What was emptied is reset; a secret that was not entered is kept. */
export const updateBodyOf = (
  fields: readonly FormField[],
  inputs: Inputs,
  before: Inputs,
): Record<string, unknown> =>
  nested(
    fields.flatMap((field): readonly Entry[] => {
      const input = inputs[field.attr] ?? '';
      if (isEqual(input, before[field.attr])) return [];
      return [[field.path, toValue(field, input) ?? null]];
    }),
  );

type Entry = readonly [path: readonly string[], value: unknown];

function nested(entries: readonly Entry[]): Record<string, unknown> {
  const body: Record<string, unknown> = {};
  for (const [path, value] of entries) {
    let target = body;
    for (const key of path.slice(0, -1)) target = (target[key] ??= {}) as Record<string, unknown>;
    target[path.at(-1) ?? ''] = value;
  }
  return body;
}

const isEqual = (one: unknown, other: unknown): boolean => JSON.stringify(one) === JSON.stringify(other);

/** A body with a sign in place of each secret, for lines that are shown and copied. */
export const withoutSecrets = (
  fields: readonly FormField[],
  body: Readonly<Record<string, unknown>>,
): Record<string, unknown> =>
  nested(
    fields.flatMap((field): readonly Entry[] => {
      const value = valueAt(body, field.path);
      if (value === undefined) return [];
      return [[field.path, field.control === 'secret' && value !== null ? '…' : value]];
    }),
  );

/** The field that an error is about: that of its `attr`, or the one that contains it. */
export const fieldOfError = (fields: readonly FormField[], attr: string | null): FormField | undefined =>
  attr === null
    ? undefined
    : fields.find((field) => attr === field.attr || attr.startsWith(`${field.attr}__`));
