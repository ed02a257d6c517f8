/** Why a regular expression is invalid or unsupported, and what to write instead. */
export class PatternError extends Error {
  override readonly name = 'PatternError';
  readonly summary: string;
  readonly suggestion: string | null;

  constructor(summary: string, suggestion: string | null = null) {
    super(suggestion === null ? summary : `${summary} ${suggestion}`);
    this.summary = summary;
    this.suggestion = suggestion;
  }
}

export const invalidPattern = (): PatternError => new PatternError('Invalid regular expression.');

export const tooComplex = (): PatternError =>
  new PatternError(
    'This regular expression is too complex for PostgreSQL.',
    'Use fewer alternatives and repetitions, or several expressions.',
  );

export const unsupportedPart = (part: string, suggestion: string | null = null): PatternError =>
  new PatternError(`This regular expression contains ${part}, which is not supported.`, suggestion);
