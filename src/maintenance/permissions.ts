import { DestinationError } from '../destination/destination.ts';

/** A right in the bucket that the credentials do not have. */
export class MissingPermission extends Error {
  override readonly name = 'RightMissing';
  constructor(right: string) {
    super(`The credentials of the destination lack the right ${right}.`);
  }
}

/** Makes a request; a denial becomes the right that is missing. */
export async function withPermission<Result>(right: string, request: () => Promise<Result>): Promise<Result> {
  try {
    return await request();
  } catch (error) {
    if (error instanceof DestinationError && error.type === 'AccessDenied')
      throw new MissingPermission(right);
    throw error;
  }
}
