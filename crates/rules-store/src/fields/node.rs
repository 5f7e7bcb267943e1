use wire::messages::*;

use super::meta::META;
use super::tables;

tables! {
    NODE = wire::messages::NODE {
        honoured metadata => META;
        honoured spec => NODE_WISHES;
        honoured status;
    }
    NODE_WISHES = NODE_SPEC {
        honoured unschedulable: "Whether new pods stay away.";
        honoured taints: "What keeps pods away that do not tolerate it." => TAINTS;
        honoured podCIDR, podCIDRs, providerID, externalID: "For people and programs to read; nothing here acts on it.";
        warned configSource: "the node agent is not set up through the API; its flags say all";
        warned podPreemptionPolicy: "no pod gives way to another here";
    }
    TAINTS = TAINT {
        honoured key, value, timeAdded;
        honoured effect: "NoSchedule keeps new pods away; NoExecute ends those as well that are there and do not \
            tolerate it. PreferNoSchedule does nothing: the scheduler has no preferences.";
    }
}
