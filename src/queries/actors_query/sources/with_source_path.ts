import { QueryError } from '../../query_errors.ts';

/** Refusals of an insight name the member where it stands here: in the source of the source. @throws QueryError */
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

/** Insights have no source of their own: what names one already is about the point. */
const isOfInsight = /^query__(?!source__)/;
