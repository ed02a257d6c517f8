import { z } from 'zod';

/** What a draft is asked for with. */
export const draftSqlQuery = z.object({
  prompt: z
    .string()
    .optional()
    .describe('What the query is to answer, in at most 400 characters of English.'),
  current_query: z
    .string()
    .optional()
    .describe('The query that the prompt is about; one such as "only the last 7 days" changes it.'),
});

/** A drafted query. */
export const draftedSqlSchema = z
  .object({ sql: z.string().describe('A query of the dialect that compiles for the project.') })
  .meta({ id: 'DraftedSql' });
