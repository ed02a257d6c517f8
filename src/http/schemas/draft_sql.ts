import { z } from 'zod';

/** The parameters of a draft. */
export const draftSqlQuery = z.object({
  prompt: z.string().optional().describe('A question in plain English, at most 400 characters.'),
  current_query: z
    .string()
    .optional()
    .describe('The query that the prompt refers to. Only a language model reads it.'),
});

/** A drafted query. */
export const draftedSqlSchema = z
  .object({ sql: z.string().describe('A query in the SQL dialect that compiles for the project.') })
  .meta({ id: 'DraftedSql' });
