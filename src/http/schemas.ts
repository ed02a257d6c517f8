import * as z from 'zod';
import { bounds, boundText } from '../config/bounds.ts';

/** A time in a response: ISO 8601 in UTC with milliseconds. */
export const responseTimestampSchema = z.string().meta({ format: 'date-time' });

/** An id in a path, lower-cased as stored. Other text than a UUID is 404. */
export const pathId = z.guid().toLowerCase();

/** A field that was changed. */
export const fieldChangeSchema = z.object({
  field: z.string().describe('The path of the field, joined by dots.'),
  before: z.unknown().describe('Null where the field had no value.'),
  after: z.unknown(),
  secret: z.boolean().describe('Whether the field is a secret, whose values are never returned.'),
});

/** A field of responses that requests may send back: accepted and ignored. */
export const readOnly = z.unknown().optional().meta({ readOnly: true });

const errorBody = z
  .object({ type: z.string(), code: z.string(), detail: z.string(), attr: z.string().nullable() })
  .meta({ id: 'Error' });

/** The response to a command that was accepted and is still pending. */
const acceptedBody = z.object({ detail: z.string() }).meta({ id: 'Accepted' });

/** The same for a command that creates an object, which has its id from the start. */
export const acceptedCreation = z
  .object({ id: z.string(), detail: z.string() })
  .meta({ id: 'AcceptedCreation' });

/** The responses that every operation can return. */
export const errorResponses = { '4xx': errorBody, '5xx': errorBody };

/** The responses of operations that submit a command to the export's schedule. */
export const commandResponses = { 202: acceptedBody, ...errorResponses };

export const noContent = z.undefined().describe('No body');

/** No body, or an empty object. */
export const emptyBody = z.strictObject({});

/** A page of a list. */
export const pageOf = <Item extends z.ZodType>(item: Item) =>
  z.object({
    count: z.number().int(),
    next: z.string().nullable(),
    previous: z.string().nullable(),
    results: z.array(item),
  });

/** Text that is not blank: JSON Schema knows it as a pattern. */
const notBlank = (text: z.ZodString, message = 'This field may not be blank.') =>
  text.refine((given) => given.trim() !== '', message).meta({ pattern: '\\S' });

/** A line of text that people read, which may be empty. */
export const lineText = (maxLength: number) =>
  z
    .string()
    .max(maxLength, `Must have at most ${maxLength} characters.`)
    // Line breaks and other control characters, and those that reverse the direction of what follows.
    .regex(
      /^[^\p{Cc}\p{Zl}\p{Zp}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]*$/u,
      'Line breaks and other control characters are not allowed, nor those that change the direction of text.',
    )
    // Python reads no categories of characters.
    .meta({ pattern: String.raw`^[^\r\n]*$` });

/** A name that people read: in lists, logs, messages and other user interfaces. */
export const nameText = (maxLength: number) => notBlank(lineText(maxLength));

/** The query of an export. */
export const dialectQueryText = z
  .string()
  .max(bounds.dialectQuery.max, `Must have at most ${boundText(bounds.dialectQuery)}.`);

/** The number of items on a page. */
export const limitParameter = z.coerce
  .number('Must be a whole number from 1 to 1000.')
  .int()
  .min(1, 'Must be at least 1.')
  .max(1_000, 'Must be at most 1000.')
  .default(100);

/** The number of items before a page. */
export const offsetParameter = z.coerce
  .number('Must be a whole number.')
  .int()
  .min(0, 'Must be at least 0.')
  .max(2_147_483_647)
  .default(0);

/** The parameters of a paged list. */
export const listQuery = z.object({ limit: limitParameter, offset: offsetParameter });

/** A parameter that can be repeated or comma-separated. */
export const repeatable = z.union([z.string(), z.array(z.string())]).optional();

/** A user, embedded in a resource that the user created. */
export const userSchema = z
  .object({
    id: z.number().int(),
    uuid: z.string().meta({ format: 'uuid' }),
    distinct_id: z.string(),
    first_name: z.string(),
    last_name: z.string(),
    email: z.string().meta({ format: 'email' }),
    is_email_verified: z.boolean(),
    mascot_config: z.record(z.string(), z.unknown()),
    role_at_organization: z.string(),
  })
  .meta({ id: 'User' });
