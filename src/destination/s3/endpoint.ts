import type { LookupFunction } from 'node:net';
import { guardedLookup, outgoingUrlFault, privateFault } from '../../network/outgoing_url.ts';
import type { AllowedPrivate } from '../../network/private_addresses.ts';
import { DestinationError } from '../destination.ts';

/** Says why `endpoint` cannot be used as an endpoint, to follow "The endpoint_url is refused: "; null when it can. */
export function endpointProblem(endpoint: string, allowed: AllowedPrivate): string | null {
  const fault = outgoingUrlFault(endpoint, allowed);
  if (fault !== null && fault !== privateFault) return fault;
  const { search, hash } = new URL(endpoint);
  return search === '' && hash === '' ? fault : 'it must not hold a query or a fragment';
}

/** A name look-up that refuses addresses which are not allowed at the moment of connecting. */
export const endpointLookup = (allowed: AllowedPrivate): LookupFunction =>
  guardedLookup(
    allowed,
    () =>
      new DestinationError('EndpointNotAllowed', `The endpoint_url is refused: ${privateFault}.`, {
        transient: false,
      }),
  );
