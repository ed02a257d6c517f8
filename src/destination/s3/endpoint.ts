import type { LookupFunction } from 'node:net';
import { guardedLookup, outgoingUrlProblem, privateAddressProblem } from '../../network/outgoing_url.ts';
import type { AllowedPrivate } from '../../network/private_addresses.ts';
import { DestinationError } from '../destination.ts';

/** Returns why `endpoint` cannot be used, to follow "The endpoint_url is not allowed: "; null if it can. */
export function endpointProblem(endpoint: string, allowed: AllowedPrivate): string | null {
  const problem = outgoingUrlProblem(endpoint, allowed);
  if (problem !== null && problem !== privateAddressProblem) return problem;
  const { search, hash } = new URL(endpoint);
  return search === '' && hash === '' ? problem : 'it must not contain a query or a fragment';
}

/** A DNS lookup that rejects private addresses when connecting. */
export const endpointLookup = (allowed: AllowedPrivate): LookupFunction =>
  guardedLookup(
    allowed,
    () =>
      new DestinationError(
        'EndpointNotAllowed',
        `The endpoint_url is not allowed: ${privateAddressProblem}.`,
        {
          transient: false,
        },
      ),
  );
