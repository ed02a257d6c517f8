import { createQueryKinds } from './registry.ts';

/** Every kind of query that exportd answers: a new one is a folder beside this file and a line here. */
export const productQueryKinds = createQueryKinds([]);
