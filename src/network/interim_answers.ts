import type { ClientRequest } from 'node:http';

/** A server did not answer in time, or not in this number of interim answers. */
export const noResponse = (): Error =>
  Object.assign(new Error('The server did not respond.'), { name: 'NoResponse' });

/**
 * Ends a request whose server sends more interim answers (1xx) than this. Node parses each of them, and no timeout of it ends
 * a connection that is never silent.
 */
export function limitInterimAnswers(request: ClientRequest, max: number): void {
  let interim = 0;
  request.on('information', () => {
    interim += 1;
    if (interim > max) request.destroy(noResponse());
  });
}
