import type { FastifySchemaValidationError } from 'fastify';
import { ApiError } from './api_error.ts';

/** Formats the path of a field as `attr`, for example `destination__config__prefix`. */
export const attrOf = (path: readonly (string | number)[]): string | null =>
  path.length === 0 ? null : path.join('__');

const quoted = (names: readonly string[]): string => names.map((name) => `'${name}'`).join(', ');

const strings = (value: unknown): string[] => (Array.isArray(value) ? value.map(String) : []);

/** The value at a path of the body, or undefined. */
const valueAt = (body: unknown, path: readonly string[]): unknown =>
  path.reduce<unknown>(
    (value, key) =>
      typeof value === 'object' && value !== null && Object.hasOwn(value, key)
        ? (value as Record<string, unknown>)[key]
        : undefined,
    body,
  );

/** The message that a schema defines itself; zod's default messages start with these words. */
const customMessage = ({ message }: FastifySchemaValidationError): string | undefined =>
  /^(Invalid|Too small:|Too big:)( |$)/.test(message ?? '') ? undefined : message;

/** JSON's names for zod's types. */
const typeNames: Readonly<Record<string, string>> = { int: 'whole number', record: 'object' };

function describeType(expected: string): string {
  const type = typeNames[expected] ?? expected;
  return /^[aeio]/.test(type) ? `an ${type}` : `a ${type}`;
}

/** Describes the violated limit of a number, or of the length of a string or array. */
function boundMessage({ params }: FastifySchemaValidationError): string {
  const { origin, minimum, maximum, inclusive } = params;
  const bound = String(minimum ?? maximum);
  const isMinimum = minimum !== undefined;
  const unit = origin === 'string' ? 'character' : origin === 'array' ? 'item' : undefined;
  if (unit !== undefined)
    return `Must have at ${isMinimum ? 'least' : 'most'} ${bound} ${unit}${bound === '1' ? '' : 's'}.`;
  if (inclusive === false) return `Must be ${isMinimum ? 'greater' : 'less'} than ${bound}.`;
  return `Must be at ${isMinimum ? 'least' : 'most'} ${bound}.`;
}

/**
 * The 400 response for a request that does not match its schema. It describes the first issue and never repeats a
 * value, which may be a secret.
 */
export function invalidRequest(issues: readonly FastifySchemaValidationError[], body: unknown): ApiError {
  const [issue] = issues;
  const path = (issue?.instancePath ?? '').split('/').filter((part) => part !== '');
  const reject = (code: string, detail: string, attr: string | null = attrOf(path)) =>
    new ApiError(400, code, detail, { attr });
  if (!issue) return reject('invalid_input', 'The request is invalid.');
  // Keywords are the codes of zod's issues.
  switch (issue.keyword) {
    case 'unrecognized_keys': {
      const unknown = strings(issue.params.keys).sort();
      return reject(
        'invalid_input',
        `Unknown field${unknown.length === 1 ? '' : 's'} ${quoted(unknown)}.`,
        attrOf([...path, unknown[0] ?? '']),
      );
    }
    case 'invalid_type': {
      const value = valueAt(body, path);
      const expected = String(issue.params.expected);
      if (path.length === 0) return reject('invalid_input', `The body must be ${describeType(expected)}.`);
      if (value === undefined) return reject('required', 'This field is required.');
      if (value === null) return reject('invalid_input', 'This field may not be null.');
      return reject('invalid_input', customMessage(issue) ?? `This field must be ${describeType(expected)}.`);
    }
    case 'invalid_value':
      return reject(
        'invalid_input',
        customMessage(issue) ?? `Must be one of: ${quoted(strings(issue.params.values))}.`,
      );
    case 'too_small':
    case 'too_big':
      return reject('invalid_input', customMessage(issue) ?? boundMessage(issue));
    case 'invalid_union': {
      const value = valueAt(body, path);
      if (value === undefined && path.length > 0) return reject('required', 'This field is required.');
      const options = strings(issue.params.options);
      const message = options.length > 0 ? `Must be one of: ${quoted(options)}.` : 'This field is invalid.';
      return reject('invalid_input', customMessage(issue) ?? message);
    }
    default:
      return reject('invalid_input', issue.message ?? 'This field is invalid.');
  }
}
