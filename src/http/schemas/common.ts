import { z } from 'zod';

/** A time in an answer: ISO 8601, UTC, milliseconds. */
export const responseTimestamp = z.string().meta({ format: 'date-time' });

/** An id in a path; what is no UUID names nothing. Lower case, as ids are made and compared. */
export const pathId = z.guid().toLowerCase();

/** A member that answers hold and requests may send back: accepted and ignored. */
export const readOnly = z.unknown().optional().meta({ readOnly: true });

const errorBody = z
  .object({ type: z.string(), code: z.string(), detail: z.string(), attr: z.string().nullable() })
  .meta({ id: 'Error' });

/** The answer to a command that was accepted and is carried out later. */
const acceptedBody = z.object({ detail: z.string() }).meta({ id: 'Accepted' });

/** The answers that every operation may give besides its own. */
export const errorResponses = { '4xx': errorBody, '5xx': errorBody };

/** Answers of operations that ask the export's schedule for something. */
export const commandResponses = { 202: acceptedBody, ...errorResponses };

/** No body. */
export const noContent = z.undefined().describe('No body');

/** A body that means nothing: empty, or an empty object. */
export const emptyBody = z.strictObject({});

/** A page of a list. */
export const pageOf = <Item extends z.ZodType>(item: Item) =>
  z.object({
    count: z.number().int(),
    next: z.string().nullable(),
    previous: z.string().nullable(),
    results: z.array(item),
  });

/** How many items a page has. */
export const limitParameter = z.coerce
  .number('Must be a whole number from 1 to 1000.')
  .int()
  .min(1, 'Must be at least 1.')
  .max(1_000, 'Must be at most 1000.')
  .default(100);

/** How many items lie before a page. */
export const offsetParameter = z.coerce
  .number('Must be a whole number.')
  .int()
  .min(0, 'Must be at least 0.')
  .max(2_147_483_647)
  .default(0);

/** The parameters of a list in pages. */
export const listQuery = z.object({ limit: limitParameter, offset: offsetParameter });

/** A parameter that may be given several times, or once with commas. */
export const repeatable = z.union([z.string(), z.array(z.string())]).optional();
