import { describe, expect, it } from '@jest/globals';
import {
  dialectTokens,
  errorRangeOf,
  markedPieces,
  summaryOfError,
} from '../../../src/console/editor/marked_text.ts';
import { compileQuery } from '@exportd/dialect/compile/compile_query';
import { DialectError } from '@exportd/dialect/query_text';
import { project } from '../../../src/dialect/test/project.ts';

function errorOf(query: string): DialectError {
  try {
    compileQuery(query, project);
  } catch (error) {
    if (error instanceof DialectError) return error;
  }
  throw new Error('The query compiles.');
}

describe('the position of an error', () => {
  it.each([
    ['select evnt from events'],
    ['select 1\nfrom\n  evnts'],
    ["select '😀', evnt from events"],
    ['select event from events where'],
    ['select\r\n  lowr(event)\r\nfrom events'],
    [`select ${'event, '.repeat(40)} evnt from events`],
  ])('is read from the detail of the API for %j', (query) => {
    const { message, offset, length } = errorOf(query);
    expect(errorRangeOf(message, query)).toEqual({ offset, length });
  });

  it('is unknown for other errors', () => {
    expect(errorRangeOf('The query took longer than 60 s.', 'select 1')).toBeNull();
  });

  it('has words without the excerpt', () => {
    expect(summaryOfError(errorOf('select evnt from events').message)).toMatch(
      /^[^\n]*evnt.*\(line 1, column 8\)$/,
    );
  });
});

describe('a marked text', () => {
  const marked = (query: string) => {
    const { offset, length } = errorOf(query);
    return markedPieces(query, dialectTokens(query, new Set(['SELECT', 'FROM'])), { offset, length })
      .filter(({ isWrong }) => isWrong)
      .map(({ text }) => text)
      .join('');
  };

  it('marks what is wrong', () => {
    expect(marked('select evnt from events')).toBe('evnt');
  });

  it('marks the space after a text that ends too soon', () => {
    expect(marked('select event from events where')).toBe(' ');
  });
});
