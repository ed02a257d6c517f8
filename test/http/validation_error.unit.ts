import { describe, expect, it } from '@jest/globals';
import * as z from 'zod';
import { invalidRequest } from '../../src/http/plugins/errors.ts';

const node = (kind: string) => z.object({ kind: z.literal(kind) });
const body = z.object({
  limit: z.number().int().min(1).max(1000).optional(),
  ratio: z.number().gt(0).lt(1).optional(),
  name: z.string().min(2).max(3).optional(),
  list: z.array(z.string()).min(1).max(2).optional(),
  record: z.record(z.string(), z.string()).optional(),
  series: z.array(z.discriminatedUnion('kind', [node('EventsNode'), node('ActionsNode')])).optional(),
  either: z.union([z.string(), z.number()]).optional(),
  pairs: z.array(z.object({ key: z.union([z.string(), z.number()]) })).optional(),
  own: z.string().max(1, 'One letter is enough.').optional(),
});

function validationError(value: object) {
  const issues = body.safeParse(value).error?.issues ?? [];
  const { detail, attr, code } = invalidRequest(
    issues.map(({ code: keyword, path, message, ...params }) => ({
      keyword,
      instancePath: `/${path.join('/')}`,
      schemaPath: '',
      message,
      params,
    })),
    value,
  ).body();
  return [attr, detail, code];
}

describe('messages of validation errors', () => {
  it.each([
    [{ limit: 0 }, 'limit', 'Must be at least 1.'],
    [{ limit: 1001 }, 'limit', 'Must be at most 1000.'],
    [{ limit: 1.5 }, 'limit', 'This field must be a whole number.'],
    [{ ratio: 0 }, 'ratio', 'Must be greater than 0.'],
    [{ ratio: 1 }, 'ratio', 'Must be less than 1.'],
    [{ name: 'a' }, 'name', 'Must have at least 2 characters.'],
    [{ name: 'abcd' }, 'name', 'Must have at most 3 characters.'],
    [{ list: [] }, 'list', 'Must have at least 1 item.'],
    [{ list: ['a', 'b', 'c'] }, 'list', 'Must have at most 2 items.'],
    [{ record: [] }, 'record', 'This field must be an object.'],
    [{ series: [{ kind: 'Node' }] }, 'series__0__kind', "Must be one of: 'EventsNode', 'ActionsNode'."],
    [{ either: {} }, 'either', 'This field is invalid.'],
    [{ own: 'ab' }, 'own', 'One letter is enough.'],
  ])('%j', (value, attr, detail) => {
    expect(validationError(value)).toEqual([attr, detail, 'invalid_input']);
  });

  it.each([
    [{ series: [{}] }, 'series__0__kind'],
    [{ pairs: [{}] }, 'pairs__0__key'],
  ])('%j lacks a required field', (value, attr) => {
    expect(validationError(value)).toEqual([attr, 'This field is required.', 'required']);
  });
});
