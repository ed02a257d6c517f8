import { QueryError } from '../../query_errors.ts';

/** Rewrites the paths of errors of an insight to its position here, the source of the source. @throws QueryError */
export async function withSourcePath<Result>(run: () => Result | Promise<Result>): Promise<Result> {
  try {
    return await run();
  } catch (error) {
    if (!(error instanceof QueryError) || error.attr === null || !isOfInsight.test(error.attr)) throw error;
    const { code, message, position } = error;
    throw new QueryError(code, message, {
      attr: error.attr.replace(/^query__/, 'query__source__source__'),
      position,
    });
  }
}

/** An insight has no field `source`; a path that starts with it is already about the point. */
const isOfInsight = /^query__(?!source__)/;
