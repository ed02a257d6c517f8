/** The fields of a config as a request gives them, and the errors that name one. */
import type * as z from 'zod';
import { bounds, boundText } from '../config/bounds.ts';
import { CommandRejected } from '../domain/errors.ts';

/** The path of a config field in a request, as error responses name it. */
export const configAttribute = (field?: string): string =>
  field === undefined ? 'destination__config' : `destination__config__${field}`;

/** Creates the error that rejects a config because of one field. */
export const rejectField = (field: string, detail: string): CommandRejected =>
  new CommandRejected('invalid_input', detail, configAttribute(field));

/** How many unknown fields a message names. */
const maxNamed = 10;

/**
 * The fields of a config without those that are null, which mean their default.
 * @throws CommandRejected also for one that is too large to be listed with others
 */
export function givenFields(config: unknown): Record<string, unknown> {
  if (typeof config !== 'object' || config === null || Array.isArray(config))
    throw new CommandRejected('invalid_input', 'Configuration must be an object.', configAttribute());
  for (const [field, value] of Object.entries(config))
    if (typeof value === 'string' && value.length > bounds.configText.max)
      throw rejectField(field, `A text of a configuration has at most ${boundText(bounds.configText)}.`);
  if (Buffer.byteLength(JSON.stringify(config)) > bounds.config.max)
    throw new CommandRejected(
      'invalid_input',
      `A configuration has at most ${boundText(bounds.config)}, as JSON.`,
      configAttribute(),
    );
  return Object.fromEntries(Object.entries(config).filter(([, value]) => value !== null));
}

/**
 * Validates the fields of a config against a strict schema. The error names the invalid field and never repeats its
 * value, which may be a secret.
 * @throws CommandRejected
 */
export function parseFields<Schema extends z.ZodObject>(
  schema: Schema,
  fields: Readonly<Record<string, unknown>>,
): z.infer<Schema> {
  const unknown = Object.keys(fields)
    .filter((field) => !(field in schema.shape))
    .sort();
  if (unknown[0] !== undefined)
    throw rejectField(
      unknown[0],
      `Configuration has unknown field/s: ${unknown
        .slice(0, maxNamed)
        .map((field) => `'${field}'`)
        .join(', ')}${unknown.length > maxNamed ? ` and ${unknown.length - maxNamed} more` : ''}`,
    );
  const parsed = schema.safeParse(fields);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  const field = String(issue?.path[0] ?? '');
  if (!(field in fields))
    throw new CommandRejected(
      'required',
      `Configuration missing required field: '${field}'`,
      configAttribute(field),
    );
  // Only for the field itself: values inside it have their own messages.
  if (issue?.code === 'invalid_type' && issue.path.length === 1)
    throw rejectField(
      field,
      `Configuration has invalid type for '${field}': got '${typeName(fields[field])}', expected '${issue.expected}'`,
    );
  // An item of a list of objects has fields of its own, such as filters__0__key.
  const path = (issue?.path.length ?? 0) > 2 ? (issue?.path.join('__') ?? field) : field;
  throw rejectField(path, issue?.message ?? 'Configuration is invalid.');
}

const typeName = (value: unknown): string => (Array.isArray(value) ? 'array' : typeof value);

/** Formats a list of names: `['gzip', 'zstd']`. */
export const formatNames = (names: readonly string[]): string =>
  `[${names.map((name) => `'${name}'`).join(', ')}]`;
