import { z } from 'zod';

/** Fields that every query kind accepts because clients send them; no result depends on them. */
export const ignoredFields = {
  response: z.unknown().optional(),
  name: z.string().nullish(),
  modifiers: z.looseObject({}).nullish(),
  tags: z.looseObject({}).nullish(),
  version: z.number().nullish(),
};

/** Their names, which the cache key leaves out. */
export const ignoredFieldNames: ReadonlySet<string> = new Set(Object.keys(ignoredFields));
