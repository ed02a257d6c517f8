import type { FastifySchemaValidationError } from 'fastify';
import { ApiError } from './api_error.ts';

/** The path of a member as `attr` shows it. */
export const attrOf = (path: readonly (string | number)[]): string | null =>
  path.length === 0 ? null : path.join('__');

const quoted = (names: readonly string[]): string => names.map((name) => `'${name}'`).join(', ');

const strings = (value: unknown): string[] => (Array.isArray(value) ? value.map(String) : []);

/** The value at a path of the body, undefined where there is none. */
const valueAt = (body: unknown, path: readonly string[]): unknown =>
  path.reduce<unknown>(
    (value, member) =>
      typeof value === 'object' && value !== null && Object.hasOwn(value, member)
        ? (value as Record<string, unknown>)[member]
        : undefined,
    body,
  );

/** What a schema says itself of a value that it refuses; zod's own sentences begin with these words. */
const ownSentence = ({ message }: FastifySchemaValidationError): string | undefined =>
  /^(Invalid|Too small:|Too big:)( |$)/.test(message ?? '') ? undefined : message;

/** How JSON calls what zod expects. */
const typeNames: Readonly<Record<string, string>> = { int: 'whole number', record: 'object' };

function typeSentence(expected: string): string {
  const type = typeNames[expected] ?? expected;
  return /^[aeio]/.test(type) ? `an ${type}` : `a ${type}`;
}

/** What a number, the length of a text or the length of a list may be. */
function boundSentence({ params }: FastifySchemaValidationError): string {
  const { origin, minimum, maximum, inclusive } = params;
  const bound = String(minimum ?? maximum);
  const isLeast = minimum !== undefined;
  const counted = origin === 'string' ? 'character' : origin === 'array' ? 'item' : undefined;
  if (counted !== undefined)
    return `${isLeast ? 'At least' : 'At most'} ${bound} ${counted}${bound === '1' ? '' : 's'}.`;
  if (inclusive === false) return `Must be ${isLeast ? 'greater' : 'less'} than ${bound}.`;
  return `Must be at ${isLeast ? 'least' : 'most'} ${bound}.`;
}

/**
 * The 400 for a request that does not fit its schema: of the first thing that is wrong, in words that name the member
 * and never repeat a value.
 */
export function invalidRequest(issues: readonly FastifySchemaValidationError[], body: unknown): ApiError {
  const [issue] = issues;
  const path = (issue?.instancePath ?? '').split('/').filter((part) => part !== '');
  const refuse = (code: string, detail: string, attr: string | null = attrOf(path)) =>
    new ApiError(400, code, detail, { attr });
  if (!issue) return refuse('invalid_input', 'The request is not valid.');
  // The keywords are the codes of zod's issues.
  switch (issue.keyword) {
    case 'unrecognized_keys': {
      const unknown = strings(issue.params.keys).sort();
      return refuse(
        'invalid_input',
        `Unknown field/s: ${quoted(unknown)}`,
        attrOf([...path, unknown[0] ?? '']),
      );
    }
    case 'invalid_type': {
      const value = valueAt(body, path);
      const expected = String(issue.params.expected);
      if (path.length === 0) return refuse('invalid_input', `The body must be ${typeSentence(expected)}.`);
      if (value === undefined) return refuse('required', 'This field is required.');
      if (value === null) return refuse('invalid_input', 'This field may not be null.');
      return refuse('invalid_input', ownSentence(issue) ?? `This field must be ${typeSentence(expected)}.`);
    }
    case 'invalid_value':
      return refuse(
        'invalid_input',
        ownSentence(issue) ?? `Must be one of: ${quoted(strings(issue.params.values))}.`,
      );
    case 'too_small':
    case 'too_big':
      return refuse('invalid_input', ownSentence(issue) ?? boundSentence(issue));
    case 'invalid_union': {
      const value = valueAt(body, path);
      if (value === undefined && path.length > 0) return refuse('required', 'This field is required.');
      const options = strings(issue.params.options);
      const sentence =
        options.length > 0 ? `Must be one of: ${quoted(options)}.` : 'This field is not valid.';
      return refuse('invalid_input', ownSentence(issue) ?? sentence);
    }
    default:
      return refuse('invalid_input', issue.message ?? 'This field is not valid.');
  }
}
