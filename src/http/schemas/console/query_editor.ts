import { z } from 'zod';

const namedFields = z.object({
  name: z.string(),
  fields: z.array(
    z.object({ name: z.string(), type: z.string().describe('The ClickHouse name of the type.') }),
  ),
});

/** What an editor of queries completes. */
export const vocabularySchema = z.object({
  tables: z.array(namedFields),
  functions: z.array(
    z.object({ name: z.string(), kind: z.string(), signature: z.string(), description: z.string() }),
  ),
  keywords: z.array(z.string()),
});
export type VocabularyResponse = z.infer<typeof vocabularySchema>;

/** The names of events and properties in the newest rows, the most frequent first. */
export const projectNamesSchema = z.object({
  events: z.array(z.string()),
  event_properties: z.array(z.string()),
  person_properties: z.array(z.string()),
});
export type ProjectNamesResponse = z.infer<typeof projectNamesSchema>;

/** The text of a query that is checked and not run. */
export const checkQueryBody = z.strictObject({ query: z.string().max(262_144) });

/** What is wrong with a query, and where. Offsets are UTF-16 code units, as in JavaScript. */
export const checkedQuerySchema = z.object({
  error: z
    .object({
      detail: z.string(),
      line: z.number().int(),
      column: z.number().int(),
      offset: z.number().int(),
      length: z.number().int().describe('0 at the end of the text.'),
    })
    .nullable(),
});
export type CheckedQueryResponse = z.infer<typeof checkedQuerySchema>;
